"""Errors and warnings: what sort it is stands in the class, the text is the one of the command line.

Hints name arguments where those of the command line name flags; the native half puts them in words.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Container, Iterable

from . import _native


class Error(ValueError):
    """Anything that m3impute refuses to do.

    Attributes
    ----------
    hint : str or None
        What can be done about it, where that is known. It is shown below the message.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint is not None:
            self.add_note(f"hint: {hint}")

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


class BudgetWarning(ImputeWarning):
    """The time was up before a method was done: the best so far was used."""


def warn(category: type[ImputeWarning], text: str) -> None:
    """Warns at the line of the user: the first one outside of this package, and of those that call it for the user."""
    between = [getattr(sys.modules.get(name), "__file__", None) for name in ("m3impute", "sklearn", "joblib")]
    folders = tuple(os.path.join(os.path.dirname(file), "") for file in between if file is not None)
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folders):
        frame, level = frame.f_back, level + 1
    warnings.warn(_native.escaped(text), category, stacklevel=level)


def tell(notes: Iterable[str], spent: bool) -> None:
    """What a method says: a warning where the time was up, else a line of the log for those who want to read it."""
    for note in notes:
        if spent:
            warn(BudgetWarning, note)
        else:
            logging.getLogger("m3impute").info("%s", _native.escaped(note))


#: A note about a column: the column, a sentence, and a hint.
Note = tuple[str, str, str | None]

_PASSED_THROUGH = "neither filled nor used"


def news(notes: Iterable[Note], said: set[tuple[str, str]]) -> list[Note]:
    """The notes that were not said before; they are remembered.

    That a column is passed through is one thing to say, whatever the reason.
    """
    new = []
    for note in notes:
        column, text, _ = note
        key = (column, _PASSED_THROUGH if text.endswith(_PASSED_THROUGH) else text)
        if key not in said:
            said.add(key)
            new.append(note)
    return new


def warn_notes(notes: Iterable[Note]) -> None:
    """What was found in the data; the same note on several columns is one warning, with the hint for the first."""
    named = 6
    said: dict[str, tuple[list[str], str | None]] = {}
    for column, note, hint in notes:
        said.setdefault(note, ([], hint))[0].append(column)
    for note, (columns, hint) in said.items():
        more = f" and {len(columns) - named} more" if len(columns) > named else ""
        listed = ", ".join(f"`{c}`" for c in columns[:named])
        advice = "" if hint is None else f" ({hint})"
        warn(DataWarning, f"column{'' if len(columns) == 1 else 's'} {listed}{more}: {note}{advice}")


def tell_shifts(shifted: Iterable[tuple[str, str | None, str | None]]) -> None:
    """What shifts did: that values were shifted was asked for, that some stopped or that there were none was not."""
    for column, note, warning in shifted:
        tell([] if note is None else [note], spent=False)
        if warning is not None:
            warn(DataWarning, f"column `{column}`: {warning}")


def warn_fallbacks(fallbacks: Iterable[tuple[str, int, str, str]], asked: Container[str] = ()) -> None:
    """What was filled in another way than asked; columns that were asked to keep their holes are not news."""
    for column, cells, reason, done in fallbacks:
        if column in asked:
            continue
        done = done if done == "left missing" else f"filled with {done}"
        count = "1 cell" if cells == 1 else f"{cells:,} cells"
        warn(FallbackWarning, f"column `{column}`: {count} {done}, because {reason}")
