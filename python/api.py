"""Writes docs/api.md from the docstrings and signatures of the package: ``python python/api.py``.

What is public is what ``__all__`` lists. With ``--check`` nothing is written, and a page that is not up to date is an error.
"""

import importlib
import inspect
import pathlib
import re
import sys
from typing import Any

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "api.md"
MODULES = ["quietly", "quietly.accounting", "quietly.noise", "quietly.spark"]
HEAD = """# The Python package, name by name

Made from the docstrings by `python python/api.py`; change those, not this page. [python.md](python.md) is the place to start.
"""
SECTIONS = {"Parameters", "Attributes", "Returns", "Raises"}


# What only the package itself calls.
HIDDEN = {("Plan", "of")}
# Classes that are not public themselves, but whose methods are.
SHARED = {
    "_Private": "Every estimator",
    "_Coefficients": "Every model with weights",
    "_Scored": "Every estimator, on rows that may be seen",
    "_Regressor": "Every regression",
    "_Classifier": "Every classifier",
    "_Probable": "Every classifier with probabilities",
}


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name in MODULES:
        module = importlib.import_module(name)
        parts.append(f"## `{name}`\n\n{markdown(module.__doc__)}")
        public = {word: getattr(module, word) for word in module.__all__ if not word.startswith("_")}
        errors = {word: thing for word, thing in public.items() if isinstance(thing, type) and issubclass(thing, Exception)}
        others = {word: thing for word, thing in sorted(public.items(), key=order) if word not in errors}
        parts += [described(word, thing) for word, thing in others.items()]
        parts += inherited(list(others.values()))
        if errors:
            parts.append(table_of_errors(errors))
    return "\n".join(part.rstrip() + "\n" for part in parts)


def order(item: tuple[str, Any]) -> tuple[bool, str]:
    """Classes first, then functions, each by name."""
    return not isinstance(item[1], type), item[0]


def described(name: str, thing: Any) -> str:
    """A class with what is its own, or a function."""
    lines = [f"### `{name}{signature(thing)}`\n\n{markdown(thing.__doc__)}"]
    if isinstance(thing, type):
        own = [word for word in dir(thing) if is_own(thing, word) and owner(thing, word).__name__ not in SHARED]
        lines += [member(thing, word, f"{name}.{word}") for word in own]
    return "\n".join(line.rstrip() + "\n" for line in lines)


def inherited(things: list[Any]) -> list[str]:
    """What several classes have in common, said once."""
    kinds = {base for thing in things if isinstance(thing, type) for base in thing.__mro__ if base.__name__ in SHARED}
    parts = []
    for kind in sorted(kinds, key=lambda kind: list(SHARED).index(kind.__name__)):
        own = [word for word in sorted(vars(kind)) if is_own(kind, word)]
        lines = [f"### {SHARED[kind.__name__]}\n", *(member(kind, word, word) for word in own)]
        parts += ["\n".join(line.rstrip() + "\n" for line in lines)] if own else []
    return parts


def member(kind: type, word: str, name: str) -> str:
    """A method, or an attribute."""
    thing = getattr(kind, word)
    call = signature(thing) if is_callable(inspect.getattr_static(kind, word)) else ""
    return f"#### `{name}{call}`\n\n{markdown(inspect.getdoc(thing))}"


def owner(kind: type, word: str) -> type:
    return next(base for base in kind.__mro__ if word in vars(base))


def is_own(kind: type, word: str) -> bool:
    """Whether a member is public, explained, and of this package: scikit-learn documents its own."""
    if word.startswith("_") or word.endswith("_request") or (kind.__name__, word) in HIDDEN:
        return False
    documented = bool(inspect.getdoc(inspect.getattr_static(kind, word)))
    return documented and owner(kind, word).__module__.split(".")[0] in ("quietly", "builtins")


def is_callable(member: Any) -> bool:
    return callable(member) or isinstance(member, (staticmethod, classmethod))


def signature(thing: Any) -> str:
    """Names and defaults, without types: those stand beside the words."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    kept = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name not in ("self", "cls")]
    text = str(found.replace(parameters=kept, return_annotation=found.empty))
    if isinstance(thing, type) and not kept:
        # Nobody makes one by hand.
        return ""
    # A long list of keywords is explained below, one by one.
    return text if len(text) <= 160 else "(*, ...)"


def markdown(text: str | None) -> str:
    """A docstring: paragraphs as they are, sections as lists, examples as code."""
    lines = inspect.cleandoc(text or "").splitlines()
    out: list[str] = []
    section, code = False, False
    # A table of a docstring stays as it is.
    rules = [k for k, line in enumerate(lines) if line.startswith("====")]
    for k, line in enumerate(lines):
        below = lines[k + 1] if k + 1 < len(lines) else ""
        example = line.startswith((">>>", "...")) or (code and line != "")
        if rules and rules[0] <= k <= rules[-1]:
            out += ["```text", line] if k == rules[0] else [line, "```"] if k == rules[-1] else [line]
            continue
        if example != code:
            out.append("```pycon" if example else "```")
            code = example
        if example:
            out.append(line)
        elif line in SECTIONS and set(below) == {"-"}:
            section = True
            out += [f"**{line}**", ""]
        elif set(line) == {"-"}:
            continue
        elif section and line and not line.startswith(" "):
            name, _, what = line.partition(" : ")
            out.append(f"* `{name}`" + (f" ({tidy(what)})" if what else ""))
        elif section and line:
            before = ": " if lines[k - 1] and not lines[k - 1].startswith(" ") else " "
            out[-1] += before + tidy(line.strip())
        else:
            section = section and line == ""
            out.append(tidy(line))
    if code:
        out.append("```")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out))


def tidy(text: str) -> str:
    """Code in Markdown has one mark where reStructuredText has two."""
    return text.replace("``", "`")


def table_of_errors(errors: dict[str, type]) -> str:
    rows = ["### Errors", "", "| name | also a | |", "| --- | --- | --- |"]
    for name, kind in sorted(errors.items()):
        others = [base.__name__ for base in kind.__bases__ if base.__module__ == "builtins" and base is not Exception]
        rows.append(f"| `{name}` | {', '.join(f'`{other}`' for other in others)} | {tidy(' '.join((kind.__doc__ or '').split()))} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    made = page()
    if "--check" in sys.argv:
        fresh = PAGE.exists() and PAGE.read_text() == made
        print("docs/api.md is up to date" if fresh else "docs/api.md is out of date; run: python python/api.py")
        return 0 if fresh else 1
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
