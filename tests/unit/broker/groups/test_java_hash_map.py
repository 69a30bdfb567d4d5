"""The order of Java's hash maps; what is expected is what ``java.util.HashMap`` of OpenJDK 17 has shown."""

from __future__ import annotations

import pytest

from sharestate.broker.groups.java_hash_map import NUMBERS, TEXTS, TOPIC_IDS, JavaHashMap, topic_hash

IN_ONE_BIN = [64 * number for number in range(14)]


def put(*numbers: int, capacity: int = 16) -> list[int]:
    """Return the order of numbers that were put into a map."""
    keys = JavaHashMap(NUMBERS, capacity)
    for number in numbers:
        keys.put(number)
    return list(keys)


def computed(*numbers: int, capacity: int = 16) -> list[int]:
    """Return the order of numbers that were added to a map with ``computeIfAbsent``."""
    keys = JavaHashMap(NUMBERS, capacity)
    for number in numbers:
        keys.compute_if_absent(number)
    return list(keys)


def test_a_key_is_put_at_the_end_of_its_bin() -> None:
    """After growing, too: 16 and 17 are in bins of their own among 32."""
    assert put(0, 16, 1, 17) == [0, 16, 1, 17]
    assert put(*range(12), 16, 17) == [*range(12), 16, 17]


def test_compute_if_absent_puts_it_in_front() -> None:
    """The last one of a bin comes first."""
    assert computed(0, 16, 32, 1, 17, 48) == [48, 32, 16, 0, 17, 1]


def test_compute_if_absent_grows_one_call_later() -> None:
    """With 13 keys there are still 16 bins, until it is called again, if only for a key that is there."""
    assert computed(*range(12), 16) == [16, *range(12)]
    assert computed(*range(12), 16, 0) == [*range(12), 16]


def test_bits_above_the_first_sixteen_count() -> None:
    """They are mixed into those that choose the bin; so a number below 0 may come first."""
    assert put(-1, -65, 65536, 65537, 131072, 5) == [-1, -65, 65537, 65536, 131072, 5]


def test_a_long_bin_becomes_a_tree() -> None:
    """A small table grows to 64 bins first; then the root of the tree comes first, and a key behind its parent."""
    assert put(*IN_ONE_BIN, 1) == [192, 0, 64, 128, *IN_ONE_BIN[4:], 1]
    assert computed(*IN_ONE_BIN[:12], capacity=64) == [256, 448, 512, 576, 640, 704, 384, 320, 192, 128, 64, 0]


def test_a_tree_of_texts_of_one_hash() -> None:
    """They are compared as texts."""
    texts = (
        "AaAaAaAa BBBBBBBB AaBBAaBB BBAaBBAa AaAaBBBB BBBBAaAa AaBBBBAa BBAaAaBB AaAaAaBB BBBBBBAa AaBBBBBB BBAaAaAa z"
    )
    keys = JavaHashMap(TEXTS)
    for text in texts.split():
        keys.put(text)

    assert " ".join(keys) == (
        "BBAaAaBB AaAaAaAa BBBBBBBB AaBBAaBB BBAaBBAa AaAaBBBB BBBBAaAa AaBBBBAa AaAaAaBB BBBBBBAa AaBBBBBB BBAaAaAa z"
    )


def test_a_key_comes_once() -> None:
    """Whichever way it is added, and in a tree."""
    assert put(5, 5) == computed(5, 5) == [5]
    assert put(*IN_ONE_BIN, *IN_ONE_BIN) == put(*IN_ONE_BIN)


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_a_tree_that_is_divided_becomes_two_trees_or_lists(size: int) -> None:
    """However large the table becomes, it has every key once."""
    keys = [1024 * number for number in range(size)]

    assert sorted(put(*keys)) == sorted(computed(*keys)) == keys


def test_topics_are_hashed_as_kafkas_uuids() -> None:
    """``Uuid.hashCode`` of Kafka 4.3.1, whose sign is left out: -1100644771 has 32 bits."""
    assert topic_hash("KHnhHEAbRvOK4NGrXOcIGQ") == -1100644771 + 2**32
    assert TOPIC_IDS.hash_code("AAECAwQFBgcICQoLDA0ODw") == 0
