"""
A directory that a stream writes a batch at a time, each of them once, whatever is killed when.

A batch is ``batch=<number>/``, written by Spark. Then a file in ``_commits/`` is put into its place, by renaming it:
from then on the batch is committed, and is never written again. A process that was killed before that leaves a
directory that nobody reads, and that the same batch overwrites; one that was killed after it finds the file, and goes
on with the next batch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_checks import Check, Field, integer, list_of, record, text, version
from sharestate.json_lines import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

MARK: Final = "sharestate_stream"
"""The field of a commit that carries the version of the format."""

VERSION: Final = 1
"""The version that is written, and the only one that is read."""

STATES_KEPT: Final = 2
"""How many batches keep what only the next one needs, so that a reader of one can finish. [batches]"""

_COMMITS: Final = "_commits"
_BATCH: Final = "batch="
_check: Final[Check[dict[str, Any]]] = record(
    {
        MARK: Field(version(VERSION)),
        "made_by": Field(text),
        "batch": Field(integer(0)),
        "query": Field(text),
        "outputs": Field(list_of(text)),
    },
    dict,
)


@frozen
class BatchDirectory:
    """
    The batches under *path*.

    Attributes:
        path: The directory: absolute, or a URI that both Spark and pyarrow know, such as ``s3a``'s ``s3``.
        made_by: The function that writes it; those of another are refused.
        outputs: What each batch holds.
        checkpoint: Where Spark keeps the offsets of the query that writes; empty to read only.
    """

    path: str
    made_by: str
    outputs: tuple[str, ...] = ()
    checkpoint: str = ""

    def batch(self, number: int) -> str:
        """Return the directory of a batch."""
        return f"{self.path}/{_BATCH}{number}"

    def commits(self) -> list[dict[str, Any]]:
        """
        Return what was committed, in order.

        Raises:
            UnreadableFileError: A commit cannot be read, is of a version that is not known, or of something else.
        """
        from pyarrow import fs  # noqa: PLC0415 - an extra

        system, root = _located(self.path)
        infos = system.get_file_info(fs.FileSelector(f"{root}/{_COMMITS}", allow_not_found=True))
        names = [info.path for info in infos if info.path.endswith(".json")]
        return sorted(map(self._commit_in, names), key=lambda commit: commit["batch"])

    def begin(self, number: int) -> bool:
        """
        Return whether batch *number* has to be written; if not, it was committed before.

        Raises:
            UnreadableFileError: The batch before it is missing, or another query has written here.
        """
        commits = self.commits()
        query = self._query()
        for commit in commits:
            if commit["query"] != query:
                message = f"written by another query, whose checkpoint is not {self.checkpoint}"
                raise UnreadableFileError(message, self.path)
        last = commits[-1]["batch"] if commits else -1
        if number <= last:
            return False
        if number != last + 1:
            message = f"expected batch {last + 1} to be next, got {number}"
            raise UnreadableFileError(message, self.path)
        return True

    def commit(self, number: int) -> None:
        """Commit batch *number*, which was written in full."""
        system, root = _located(self.path)
        system.create_dir(f"{root}/{_COMMITS}")
        name = f"{root}/{_COMMITS}/{number}.json"
        commit = {
            MARK: VERSION,
            "made_by": self.made_by,
            "batch": number,
            "query": self._query(),
            "outputs": list(self.outputs),
        }
        with system.open_output_stream(f"{name}.new") as file:
            file.write(write_json(commit).encode())
        system.move(f"{name}.new", name)

    def retain(self, number: int, transient: Sequence[str], keep_batches: int | None) -> None:
        """
        Delete what is not needed any more, now that batch *number* is committed.

        Args:
            number: The batch.
            transient: The directories in a batch that only the next one needs.
            keep_batches: How many batches are kept; None for all. [batches]
        """
        from pyarrow import fs  # noqa: PLC0415 - an extra

        system, root = _located(self.path)
        last_deleted = -1 if keep_batches is None else number - max(keep_batches, STATES_KEPT)
        for commit in self.commits():
            if commit["batch"] <= last_deleted:  # before its directory, so that nobody begins to read that
                system.delete_file(f"{root}/{_COMMITS}/{commit['batch']}.json")
        for batch in system.get_file_info(fs.FileSelector(root)):  # those too that a killed process has left
            if not batch.base_name.startswith(_BATCH):
                continue
            old = int(batch.base_name.removeprefix(_BATCH))
            if old <= last_deleted:
                system.delete_dir(batch.path)
            elif old <= number - STATES_KEPT:
                for name in transient:
                    _delete(system, f"{batch.path}/{name}")

    def _commit_in(self, name: str) -> dict[str, Any]:
        system, _ = _located(self.path)
        try:
            with system.open_input_stream(name) as file:
                commit: dict[str, Any] = _check(read_json(file.read().decode("utf-8", "surrogateescape")), "")
        except OSError as error:
            message = f"cannot be read: {error}"
            raise UnreadableFileError(message, name) from error
        except MalformedInputError as error:
            raise UnreadableFileError(error.message, name, field=error.field or "") from error
        if commit["made_by"] != self.made_by:
            message = f"expected a directory of {self.made_by}, got one of {commit['made_by']}"
            raise UnreadableFileError(message, name, field="made_by")
        return commit

    def _query(self) -> str:
        """Return the id of the query that writes, which Spark keeps with its offsets."""
        system, root = _located(self.checkpoint)
        with system.open_input_stream(f"{root}/metadata") as file:
            return str(json.loads(file.read())["id"])


def located(path: str) -> str:
    """Return *path* as Spark and pyarrow both take it: a path of this machine is made absolute."""
    return path if "://" in path else str(Path(path.removeprefix("file:")).absolute())


def _located(path: str) -> tuple[Any, str]:
    from pyarrow import fs  # noqa: PLC0415 - an extra

    system, root = fs.FileSystem.from_uri(path)
    return system, root


def _delete(system: Any, directory: str) -> None:  # noqa: ANN401 - pyarrow has no types
    from pyarrow import fs  # noqa: PLC0415 - an extra

    if system.get_file_info(directory).type != fs.FileType.NotFound:
        system.delete_dir(directory)
