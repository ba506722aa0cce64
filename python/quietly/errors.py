"""Every way to be refused, by name. The sentences are those of the command line; none holds a data value."""


class QuietlyError(Exception):
    """Why there is no result. ``code`` is what ``quietly explain`` takes."""

    code: str | None = None


class ParameterError(QuietlyError, ValueError):
    """A parameter is outside its domain, or does not go with the others."""


class BudgetError(QuietlyError, ValueError):
    """No theorem covers what was asked, or no noise meets the budget."""


class RefitError(BudgetError):
    """Something would fit a model several times on the same rows, and pay every time."""


class SchemaError(QuietlyError, ValueError):
    """The schema says something impossible."""


class DataError(QuietlyError, ValueError):
    """The table cannot be used: its columns, types or shape."""


class TooLargeError(QuietlyError, ValueError):
    """The table or the model is too large for what was asked."""


class ModelError(QuietlyError, ValueError):
    """This is no model file, or it is damaged, or made by a newer version."""


class FileError(QuietlyError, OSError):
    """A file cannot be read or written."""


class NoiseError(QuietlyError, RuntimeError):
    """There is no randomness, so nothing was released."""


class StoppedError(QuietlyError, RuntimeError):
    """The run was stopped; nothing was saved."""


class PackageError(QuietlyError, ImportError):
    """A package that this needs is not installed; the message says how to install it."""
