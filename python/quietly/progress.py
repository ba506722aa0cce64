"""One line about a fit that takes long: what is being done, how far it is, and how long it may still take.

It tells of steps and bytes, which are public, and of nothing that was found in the rows.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .errors import ParameterError

# Whatever takes less is not worth a line, in seconds.
FIRST = 1.0
# Lines of a file cannot be wiped: there are few of them.
APART = 5.0

Tell = Callable[[str, int, int], None]


@contextmanager
def shown(verbose: bool | None) -> Iterator[Tell | None]:
    """Something to call with (what is done, how much, of how much); None if there is no terminal or notebook."""
    if verbose is not None and not isinstance(verbose, bool):
        raise ParameterError("verbose must be True, False, or None to report progress in a terminal or a notebook")
    place = _place(verbose)
    if place is None:
        yield None
        return
    line = Line(place)
    try:
        yield line.tell
    finally:
        line.close()


def in_notebook() -> bool:
    """Whether this runs in a notebook: IPython with another process to draw."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _place(verbose: bool | None) -> "_Terminal | _Notebook | _File | None":
    if verbose is False:
        return None
    if in_notebook():
        return _Notebook()
    stream = sys.stderr
    if stream is not None and stream.isatty():
        return _Terminal(stream)
    return _File(stream) if verbose and stream is not None else None


class Line:
    """What is said, and how seldom."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.start = self.since = time.monotonic()
        self.doing, self.first = "", 0
        self.said = False

    def tell(self, doing: str, done: int, of: int) -> None:
        now = time.monotonic()
        if doing != self.doing:
            self.doing, self.since, self.first = doing, now, done
        if now - self.start < FIRST:
            return
        self.place.say(self.words(done, of, now))
        self.said = True

    def words(self, done: int, of: int, now: float) -> str:
        took = f"{now - self.start:.0f} s"
        if of <= 0:
            return f"quietly: {self.doing}, {took}"
        million = 1e6 if self.doing == "reading" else 1
        unit = " MB" if self.doing == "reading" else ""
        text = f"quietly: {self.doing} {done / million:.0f} of {of / million:.0f}{unit}, {took}"
        # What came before the first word about this, reading the table say, tells nothing of its pace.
        if self.first < done < of and now > self.since:
            text += f", about {(now - self.since) / (done - self.first) * (of - done):.0f} s left"
        return text

    def close(self) -> None:
        if not self.said:
            return
        try:
            self.place.wipe()
        except Exception:
            # A screen that went away is no reason to lose a model.
            pass


class _Terminal:
    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def say(self, text: str) -> None:
        self.stream.write(f"\r\x1b[K{text[:79]}")
        self.stream.flush()

    def wipe(self) -> None:
        self.stream.write("\r\x1b[K")
        self.stream.flush()


class _Notebook:
    def __init__(self) -> None:
        self.handle: Any = None

    def say(self, text: str) -> None:
        from IPython.display import display

        if self.handle is None:
            self.handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self.handle.update({"text/plain": text}, raw=True)

    def wipe(self) -> None:
        if self.handle is not None:
            self.handle.update({"text/plain": ""}, raw=True)


class _File:
    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.last = float("-inf")

    def say(self, text: str) -> None:
        if time.monotonic() - self.last >= APART:
            self.last = time.monotonic()
            self.stream.write(text + "\n")
            self.stream.flush()

    def wipe(self) -> None:
        pass
