"""Files that are whole or not there."""

import os
from collections.abc import Callable

from .errors import FileError


def expect(path: str | os.PathLike[str], mine: Callable[[bytes], bool]) -> None:
    """Refuses to replace a file that is neither empty nor ``mine``."""
    try:
        with open(path, "rb") as file:
            there = file.read() if os.path.isfile(path) else b""
    except FileNotFoundError:
        return
    except OSError as problem:
        raise FileError(f"{os.fspath(path)}: {problem.strerror}") from None
    if there and not mine(there):
        raise FileError(f"{os.fspath(path)} exists already: give another name, or overwrite=True to replace it")


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes under a name of its own, and gives the file its name when it is complete."""
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            # A pipe or a device is written to, and stays what it is.
            with open(path, "wb") as file:
                file.write(data)
            return
        _replace(os.path.realpath(path), data)
    except OSError as problem:
        raise FileError(f"{os.fspath(path)}: {problem.strerror}") from None


def _replace(path: str, data: bytes) -> None:
    folder, name = os.path.split(path)
    partial = os.path.join(folder, f".{name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        try:
            os.remove(partial)
        except OSError:
            # It was never made.
            pass
        raise
