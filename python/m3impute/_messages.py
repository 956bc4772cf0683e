"""Errors and warnings: what sort it is stands in the class, the text is the one of the command line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable


class Error(ValueError):
    """Anything that m3impute refuses to do.

    Attributes
    ----------
    hint : str or None
        What can be done about it, where that is known. It is shown below the message.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = None if hint is None else in_python(hint)
        if self.hint is not None:
            self.add_note(f"hint: {self.hint}")

    def __reduce__(self) -> tuple[type[Error], tuple[str, str | None]]:
        return type(self), (str(self), self.hint)


class UsageError(Error):
    """The request is wrong: an unknown name, a value out of range."""


class DataError(Error):
    """The data is wrong: infinite, empty, of another shape than the model."""


class NumericError(Error):
    """The arithmetic failed: there is no finite answer."""


class ResourceError(Error):
    """Something ran out: memory, disk, threads."""


class BugError(Error):
    """A fault of m3impute."""


class ImputeWarning(UserWarning):
    """Anything that a user should know about a filled table."""


class DataWarning(ImputeWarning):
    """Something odd in the data: a column that is passed through, a number that may stand for missing."""


class FallbackWarning(ImputeWarning):
    """Cells that were filled in another way than asked, or left missing."""


class MethodWarning(ImputeWarning):
    """Something that a method wants to say: time is up, a parameter was adapted."""


#: How the options of the command line are called here.
_OPTIONS = [
    (re.compile(r"`--inf missing`"), '`infinities="missing"`'),
    (re.compile(r"`--empty-columns (\w+)`"), r'`empty_columns="\1"`'),
    (re.compile(r"`--ignore (.+?)`"), r'`ignore=["\1"]`'),
    (re.compile(r"`--na-col (.+?)=(.+?)`"), r'`missing_values={"\1": ["\2"]}`'),
    (re.compile(r"`--kind`"), "`kinds`"),
    (re.compile(r"`--methods`"), "`methods`"),
]


def in_python(text: str) -> str:
    """The text with the options of the command line as the arguments they are here."""
    for option, argument in _OPTIONS:
        text = option.sub(argument, text)
    return text


def warn(category: type[ImputeWarning], text: str) -> None:
    """Warns at the line of the user: the first one outside of this package."""
    warnings.warn(in_python(text), category, stacklevel=2, skip_file_prefixes=_INSIDE) if _INSIDE else warnings.warn(
        in_python(text), category, stacklevel=4
    )


def _inside() -> tuple[str, ...]:
    import os
    import sys

    # `skip_file_prefixes` is there from Python 3.12 on.
    return (os.path.dirname(__file__),) if sys.version_info >= (3, 12) else ()


_INSIDE = _inside()


def warn_notes(notes: Iterable[tuple[str, str]]) -> None:
    """What was found in the data; the same thing found in several columns is one warning."""
    named = 6
    said: dict[str, list[str]] = {}
    for column, note in notes:
        said.setdefault(note, []).append(column)
    for note, columns in said.items():
        more = f" and {len(columns) - named} more" if len(columns) > named else ""
        listed = ", ".join(f"`{c}`" for c in columns[:named])
        warn(DataWarning, f"column{'' if len(columns) == 1 else 's'} {listed}{more}: {note}")


def warn_fallbacks(fallbacks: Iterable[tuple[str, int, str, str]]) -> None:
    """What was filled in another way than asked."""
    for column, cells, reason, done in fallbacks:
        done = done if done == "left missing" else f"filled with {done}"
        count = "1 cell" if cells == 1 else f"{cells:,} cells"
        warn(FallbackWarning, f"column `{column}`: {count} {done}, because {reason}")
