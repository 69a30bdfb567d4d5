"""
The keys of a Java ``HashMap``, in the order in which Java iterates over them.

Kafka's assignor goes through hash maps, so who gets which partition depends on their order. Only keys are kept here:
values are the business of a Python dict beside it.

A map is a table of bins, a power of two of them. A key's bin is a part of its hash, and iteration goes through the bins
and the keys of each. ``put`` adds a key at the end of its bin, ``computeIfAbsent`` at the front. A table grows when it
has more keys than three quarters of its bins, or a bin more than eight while the table is small; in a large table such
a bin becomes a red-black tree, whose root is the first key.

Source:
    java.util.HashMap (OpenJDK 17).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

from attrs import define

from sharestate.coordinator.placement import java_hash
from sharestate.coordinator.wire import topic_id_bytes

K = TypeVar("K")

DEFAULT_CAPACITY: Final = 16
"""The bins of a map that is made without a size (``DEFAULT_INITIAL_CAPACITY``). [bins]"""

_TREE_FROM: Final = 8
"""How many keys of a bin Java counts, when it adds one more, until they are too many (``TREEIFY_THRESHOLD``)."""

_LIST_UP_TO: Final = 6
"""The keys that the half of a tree has at most, if it becomes a list when the table grows (``UNTREEIFY_THRESHOLD``)."""

_TREES_FROM: Final = 64
"""The bins from which on a table has trees, and does not grow in their place (``MIN_TREEIFY_CAPACITY``)."""


class KeyType(NamedTuple, Generic[K]):
    """
    A Java class of keys.

    Attributes:
        hash_code: Its ``hashCode``, of which the lowest 32 bits count.
        rank: What decides in a tree between keys of the same hash, as its ``compareTo`` does.
    """

    hash_code: Callable[[K], int]
    rank: Callable[[K], Any]


def _halves(topic_id: str) -> tuple[int, int]:
    """Return the two numbers of 64 bits that a UUID consists of, signed."""
    data = topic_id_bytes(topic_id)
    return int.from_bytes(data[:8], signed=True), int.from_bytes(data[8:], signed=True)


@lru_cache(maxsize=1024)  # each partition of a topic asks for it
def topic_hash(topic_id: str) -> int:
    """
    Return ``Uuid.hashCode`` of Kafka for a topic id in 22 characters, without a sign.

    >>> topic_hash("AAECAwQFBgcICQoLDA0ODw"), topic_hash("KHnhHEAbRvOK4NGrXOcIGQ")
    (0, 3194322525)

    Raises:
        MalformedInputError: It is not the id of a topic.
    """
    most, least = _halves(topic_id)
    mixed = (most ^ least) & 0xFFFFFFFFFFFFFFFF
    return (mixed >> 32) ^ (mixed & 0xFFFFFFFF)


TEXTS: Final = KeyType[str](java_hash, lambda text: text.encode("utf-16-be", "surrogatepass"))
"""``String``."""

TOPIC_IDS: Final = KeyType[str](topic_hash, _halves)
"""``Uuid``, here in 22 characters."""

NUMBERS: Final = KeyType[int](lambda number: number, lambda number: number)
"""``Integer``."""


@define(eq=False)
class _Node(Generic[K]):
    """A key in a tree, which is also one of a list of keys."""

    key: K
    order: tuple[int, Any]
    parent: _Node[K] | None = None
    left: _Node[K] | None = None
    right: _Node[K] | None = None
    is_red: bool = True
    previous: _Node[K] | None = None
    next: _Node[K] | None = None


@define(eq=False)
class _Tree(Generic[K]):
    """The keys of a bin as a red-black tree, in which they keep an order of their own (``HashMap.TreeNode``)."""

    root: _Node[K] | None = None
    first: _Node[K] | None = None

    @classmethod
    def of(cls, keys: Iterable[K], order: Callable[[K], tuple[int, Any]]) -> _Tree[K]:
        """Return the tree of *keys*, which stay in their order but for the root (``treeify``)."""
        tree = cls()
        last: _Node[K] | None = None
        for key in keys:
            node = _Node(key, order(key))
            tree._hang(node)
            tree._link(node, last)
            last = node
        tree._lead_with_root()
        return tree

    def insert(self, key: K, order: tuple[int, Any]) -> None:
        """Add *key*: it comes behind the key below which it hangs at first (``putTreeVal``)."""
        node = _Node(key, order)
        self._link(node, self._hang(node))
        self._lead_with_root()

    def __iter__(self) -> Iterator[K]:
        """Go through the keys in the order that iteration sees."""
        node = self.first
        while node is not None:
            yield node.key
            node = node.next

    def _link(self, node: _Node[K], previous: _Node[K] | None) -> None:
        """Put *node* behind another one, or in front of all."""
        node.previous = previous
        node.next = self.first if previous is None else previous.next
        if node.next is not None:
            node.next.previous = node
        if previous is None:
            self.first = node
        else:
            previous.next = node

    def _lead_with_root(self) -> None:
        """Move the root to the front (``moveRootToFront``)."""
        root = self.root
        if root is None or root.previous is None:
            return
        root.previous.next = root.next
        if root.next is not None:
            root.next.previous = root.previous
        self._link(root, None)

    def _hang(self, node: _Node[K]) -> _Node[K] | None:
        """Put *node* into the tree, and return the one below which it hung before the tree was balanced."""
        parent, child = None, self.root
        while child is not None:
            parent, child = child, child.left if node.order <= child.order else child.right
        node.parent = parent
        if parent is None:
            self.root = node
        elif node.order <= parent.order:
            parent.left = node
        else:
            parent.right = node
        self._balance(node)
        return parent

    def _balance(self, node: _Node[K]) -> None:
        """Restore the colors above a new *node* (``balanceInsertion``)."""
        while (parent := node.parent) is not None and parent.is_red and (above := parent.parent) is not None:
            is_left = parent is above.left
            uncle = above.right if is_left else above.left
            if uncle is not None and uncle.is_red:
                parent.is_red = uncle.is_red = False
                above.is_red = True
                node = above
                continue
            if node is (parent.right if is_left else parent.left):
                self._rotate(parent, to_left=is_left)
                parent = node
            parent.is_red, above.is_red = False, True
            self._rotate(above, to_left=not is_left)
            break
        if self.root is not None:
            self.root.is_red = False

    def _rotate(self, node: _Node[K], *, to_left: bool) -> None:
        """Put a child of *node* in its place, and *node* below it."""
        child = node.right if to_left else node.left
        if child is None:
            return
        inner = child.left if to_left else child.right
        if to_left:
            node.right, child.left = inner, node
        else:
            node.left, child.right = inner, node
        if inner is not None:
            inner.parent = node
        child.parent = node.parent
        if node.parent is None:
            self.root = child
        elif node.parent.left is node:
            node.parent.left = child
        else:
            node.parent.right = child
        node.parent = child


class JavaHashMap(Generic[K]):
    """
    The keys of a Java ``HashMap`` or ``HashSet`` to which keys are added, one after the other.

    >>> letters = JavaHashMap(TEXTS)
    >>> for letter in ["q", "b", "a", "Q"]:  # q, a and Q go into the same bin
    ...     letters.put(letter)
    >>> list(letters)
    ['q', 'a', 'Q', 'b']

    Complexity:
        Adding a key takes O(1) amortized, or O(log n) in a tree; iterating over n keys takes O(n log n).
    """

    def __init__(self, type: KeyType[K], capacity: int = DEFAULT_CAPACITY) -> None:  # noqa: A002 - what it is
        """Start empty, with as many bins as the least power of two that is not below *capacity*."""
        self._type = type
        self._capacity = 1 << max(capacity - 1, 0).bit_length()
        self._hashes: dict[K, int] = {}
        self._bins: dict[int, list[K] | _Tree[K]] = {}

    def __iter__(self) -> Iterator[K]:
        """Go through the keys in Java's order."""
        for number in sorted(self._bins):
            yield from self._bins[number]

    def put(self, key: K) -> None:
        """Add *key* as ``put`` of a map and ``add`` of a set do."""
        if key in self._hashes:
            return
        place = self._place(key)
        if isinstance(place, list):
            place.append(key)
            self._expect_few(key, len(place) - 1)
        else:
            place.insert(key, self._order(key))
        if self._is_full:
            self._grow()

    def compute_if_absent(self, key: K) -> None:
        """Add *key* as ``computeIfAbsent`` does: the table grows before, and the key goes in front of its bin."""
        if self._is_full:
            self._grow()
        if key in self._hashes:
            return
        place = self._place(key)
        if isinstance(place, list):
            place.insert(0, key)
            self._expect_few(key, len(place))
        else:
            place.insert(key, self._order(key))

    def without(self, keys: Collection[K]) -> JavaHashMap[K]:
        """Return a map with as many bins without *keys*; a bin that was a tree is built again."""
        left = JavaHashMap(self._type, self._capacity)
        for key in self:
            if key not in keys:
                left.put(key)
        return left

    @property
    def _is_full(self) -> bool:
        return 4 * len(self._hashes) > 3 * self._capacity

    def _place(self, key: K) -> list[K] | _Tree[K]:
        """Return the bin of a new *key*, and note its hash."""
        code = self._type.hash_code(key) & 0xFFFFFFFF
        self._hashes[key] = code ^ (code >> 16)
        return self._bins.setdefault(self._number(key), [])

    def _number(self, key: K) -> int:
        return self._hashes[key] & (self._capacity - 1)

    def _order(self, key: K) -> tuple[int, Any]:
        """Return what decides where a tree has *key*; hashes are compared with their signs."""
        code = self._hashes[key]
        return code - 2**32 if code >= 2**31 else code, self._type.rank(key)

    def _expect_few(self, key: K, count: int) -> None:
        """Make a tree of a bin that has got *key* and counts too many, or let a small table grow (``treeifyBin``)."""
        if count < _TREE_FROM:
            return
        if self._capacity < _TREES_FROM:
            self._grow()
        else:
            number = self._number(key)
            self._bins[number] = _Tree.of(self._bins[number], self._order)

    def _grow(self) -> None:
        """Double the bins; each is divided between two, and keeps its order (``resize``, ``TreeNode.split``)."""
        old, self._capacity, self._bins = self._bins, 2 * self._capacity, {}
        for place in old.values():
            halves: dict[int, list[K]] = {}
            for key in place:
                halves.setdefault(self._number(key), []).append(key)
            for number, keys in halves.items():
                if isinstance(place, list) or len(keys) <= _LIST_UP_TO:
                    self._bins[number] = keys
                else:
                    self._bins[number] = place if len(halves) == 1 else _Tree.of(keys, self._order)


def hash_set(texts: Iterable[str]) -> list[str]:
    """
    Return *texts*, each once, in the order of a Java ``HashSet`` to which they are added.

    >>> hash_set(["q", "b", "a", "Q"])
    ['q', 'a', 'Q', 'b']
    """
    table = JavaHashMap(TEXTS)
    for text in texts:
        table.put(text)
    return list(table)
