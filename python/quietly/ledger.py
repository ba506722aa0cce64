"""What may be spent on one table, and what was; and refits that would be charged by mistake."""

import os
import sys
import tempfile
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Self

from ._quietly import Budget, LedgerFile, Schema
from .errors import FileError, ParameterError, RefitError

__all__ = ["Ledger"]

# The path of the ledger to charge where none is open. The command line reads it, too, and child processes inherit it.
VARIABLE = "QUIETLY_LEDGER"
# A file that is there as long as the block that set the variable: a worker process can outlive the block.
_BLOCK = "QUIETLY_LEDGER_BLOCK"

# What fits once what it is given; everything else of scikit-learn that calls `fit` does so several times, or on made-up targets.
_ONCE = ("sklearn.pipeline", "sklearn.compose", "sklearn.base", "sklearn.utils")

# The ledgers that are open in this process, each with the file that says so.
_open: list[tuple["Ledger", str]] = []
_here: ContextVar[tuple["Ledger", ...]] = ContextVar("ledgers", default=())
_lock = threading.Lock()
_free = threading.local()
# What the two variables said before the first ledger was opened here.
_outside: tuple[str | None, str | None] = (None, None)


class Ledger:
    """A file that remembers what was spent on one table, in whichever process, and refuses more than ``limit``.

    Inside a ``with`` block every fit is written down before the table is read, and refused if not so much is left:

    >>> with quietly.Ledger("people.ledger", quietly.Budget(3.0, 1e-6)) as ledger:  # doctest: +SKIP
    ...     quietly.LogisticRegression(epsilon=1.0, delta=1e-7, schema=schema).fit(X, y)
    ...     print(ledger)

    What is spent adds up, epsilon with epsilon and delta with delta: that holds whatever was learnt from one fit before the next was
    planned. A fit that fails stays charged.

    Worker processes charge the same ledger. An estimator takes it along, and processes that start inside the block inherit the environment
    variable ``QUIETLY_LEDGER``, which names the file. Set before Python starts, the variable has the same meaning without a ``with`` block.
    A schema file with a line ``ledger = "people.ledger"`` has it, too, for all fits with that schema.

    Parameters
    ----------
    path : path
        The file. ``quietly budget`` and ``quietly fit --ledger`` on the command line take the same one.
    limit : Budget or None, default None
        What may be spent in all; needed where the file is not there yet. It cannot be changed later.
    refits : "refuse" or "charge", default "refuse"
        Whether ``cross_val_score``, ``GridSearchCV`` and the like may fit as often as the limit allows, each fit being charged in full.
        Fits only: the scores that they print, and choices by them, are exact and not private. They are for readers who may see the rows.
    """

    def __init__(
        self, path: str | os.PathLike[str], limit: Budget | None = None, *, refits: str = "refuse"
    ) -> None:
        if refits not in ("refuse", "charge"):
            raise ParameterError(f'refits must be "refuse" or "charge", but is {refits!r}')
        if limit is not None and not isinstance(limit, Budget):
            raise ParameterError("limit must be a quietly.Budget, such as quietly.Budget(3.0, 1e-6)")
        self.refits = refits
        self.path = os.path.abspath(path)
        self._file = LedgerFile(self.path, limit)

    @property
    def limit(self) -> Budget:
        """What may be spent in all."""
        return self._file.limit

    @property
    def spent(self) -> tuple[float, float]:
        """(epsilon, delta) of all that was spent."""
        return self._file.spent

    @property
    def left(self) -> tuple[float, float]:
        """(epsilon, delta) that may still be spent."""
        return self._file.left

    @property
    def entries(self) -> list[tuple[int, str, float, float]]:
        """All that was spent: (seconds since 1970, what, epsilon, delta)."""
        return self._file.entries

    def __str__(self) -> str:
        return str(self._file)

    def __repr__(self) -> str:
        return f"<Ledger: {str(self).splitlines()[-1]}>"

    def __enter__(self) -> Self:
        global _outside
        with _lock:
            if not _open:
                _outside = (os.environ.get(VARIABLE), os.environ.get(_BLOCK))
            handle, marker = tempfile.mkstemp(prefix="quietly-block-")
            os.close(handle)
            _open.append((self, marker))
            _announce()
        _here.set((*_here.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            # A ledger may be open several times; the innermost place ends.
            place = max(k for k, (ledger, _) in enumerate(_open) if ledger is self)
            _, marker = _open.pop(place)
            _announce()
        try:
            os.remove(marker)
        except OSError:
            # The folder for temporary files was cleaned.
            pass
        here = _here.get()
        if self in here:
            place = max(k for k, ledger in enumerate(here) if ledger is self)
            _here.set((*here[:place], *here[place + 1 :]))


def _announce() -> None:
    """Names the ledger that was opened last in the environment, for child processes; without one, what was there before."""
    said = (_open[-1][0].path, _open[-1][1]) if _open else _outside
    for variable, value in zip((VARIABLE, _BLOCK), said):
        if value is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = value


@contextmanager
def for_free() -> Iterator[None]:
    """Fits in here are of public rows: nothing is charged or refused."""
    before = getattr(_free, "on", False)
    _free.on = True
    try:
        yield
    finally:
        _free.on = before


def is_free() -> bool:
    """Whether fits are of public rows here."""
    return bool(getattr(_free, "on", False))


def travelling() -> tuple[str, str] | None:
    """What an estimator takes along to another process: the ledger that it would be charged to here."""
    ledger = _active()
    if ledger is not None:
        return ledger.path, ledger.refits
    path = os.environ.get(VARIABLE)
    return (os.path.abspath(path), "refuse") if path and _BLOCK not in os.environ else None


def of(estimator: Any, schema: Schema) -> LedgerFile | None:
    """The ledger that a fit of this estimator is charged to, if there is one; refuses refits that would spend silently.

    It is the one that the schema names, or else is open here, or was where the estimator came from, or that the environment names.
    """
    if is_free():
        return None
    return _to_charge(estimator.epsilon, getattr(estimator, "_ledger", None), schema.ledger)


def _active() -> Ledger | None:
    """The ledger of the innermost ``with`` around this, or the only one that is open, whichever thread opened it."""
    here = _here.get()
    if here:
        return here[-1]
    if len(_open) > 1:
        raise ParameterError("several ledgers are open in other threads: open the one to charge in this thread, too")
    return _open[0][0] if _open else None


def _inherited() -> Ledger | None:
    """The ledger that the environment names."""
    path, marker = os.environ.get(VARIABLE), os.environ.get(_BLOCK)
    if not path:
        return None
    if marker and not os.path.exists(marker):
        raise ParameterError(
            f"this process was started inside a block of the ledger {path!r} that has ended, and an estimator was made in it: start pools of "
            "workers inside the block that they serve, or make estimators where the block is. Nothing was spent"
        )
    try:
        return Ledger(path)
    except FileError as problem:
        raise FileError(f"the environment variable {VARIABLE} names a ledger that cannot be charged: {problem}") from None


def _to_charge(epsilon: float, brought: tuple[str, str] | None, named: str | os.PathLike[str] | None) -> LedgerFile | None:
    ledger = _active()
    if ledger is None and brought is not None:
        ledger = Ledger(brought[0], refits=brought[1])
    if named is not None and ledger is not None and os.path.realpath(named) != os.path.realpath(ledger.path):
        raise ParameterError(
            f"the schema names the ledger {os.fspath(named)!r}, but {ledger.path!r} is open: a fit is charged to one. Nothing was spent"
        )
    if ledger is None:
        ledger = Ledger(named) if named is not None else _inherited()
    if epsilon != float("inf") and not (ledger and ledger.refits == "charge"):
        refitter = _refitter()
        if refitter is not None:
            raise RefitError(
                f"{refitter} would fit this estimator several times on the same rows, and every fit spends epsilon {epsilon} again. "
                "Nothing was spent. Use quietly.tune(...), which pays once; or choose on public rows, for free, with "
                'quietly.tune(..., public=(X, y)); or pay for every fit, within `with quietly.Ledger(path, limit, refits="charge"):`. '
                "The scores of private rows are exact even then, and not private."
            )
    return ledger._file if ledger else None


def _refitter() -> str | None:
    """The part of scikit-learn that called, unless it fits only once."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("sklearn.") and not name.startswith(_ONCE):
            return ".".join(name.split(".")[:2])
        frame = frame.f_back
    return None
