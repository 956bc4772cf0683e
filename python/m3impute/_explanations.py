"""What `explain` returns: why missing cells are filled with their values, as plain data that prints itself."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._frames import Frame
from ._messages import UsageError


@dataclass
class Member:
    """What a member of the ensemble predicts of a cell by itself.

    Attributes
    ----------
    name : str
        The member.
    weight : float
        Its weight in the ensemble of the column; all of them add up to 1.
    predicted : object
        The number, or the level that it takes for the most probable.
    probability : float or None
        The probability that it gives to the level that fills the cell.
    """

    name: str
    weight: float
    predicted: Any
    probability: float | None


@dataclass
class Influence:
    """What happens to a fill when one observed cell of its row is hidden.

    Attributes
    ----------
    column : label
        The column of the hidden cell.
    value : object
        The value of the hidden cell.
    without : object
        What would fill the missing cell then.
    change : float or None
        For a number: by how much it would be higher, before it is rounded; for a timestamp in seconds.
    probability_change : float or None
        By how much the probability of the value that fills the cell would be higher.
    """

    column: Hashable
    value: Any
    without: Any
    change: float | None
    probability_change: float | None


@dataclass
class Donor:
    """A row of the training table that is near, in which the column is observed.

    Attributes
    ----------
    row : int
        The row of the training table, counted from 0.
    proximity : float
        The share of the forest's trees in whose leaf both rows fall.
    value : object
        Its value of the column.
    deciding : dict
        Its values of the columns that decide; ``None`` where one is missing.
    """

    row: int
    proximity: float
    value: Any
    deciding: dict[Hashable, Any]


@dataclass(repr=False)
class Explanation:
    """Why a missing cell is filled with its value. It prints itself in words.

    Attributes
    ----------
    row, column : label
        The cell, by the labels of the table; rows without labels are counted from 0.
    kind : str
        What the values of the column are.
    filled : object
        The value that fills the cell.
    interval : tuple or None
        The ends of the 90 % interval, where the column has an order and the method has distributions.
    probabilities : dict
        The probability of each level, the most probable first; empty for numbers.
    members : list of Member
        What each member of the ensemble predicts, the largest weight first; empty where there is no ensemble.
    influences : list of Influence
        What happens when an observed cell of the row is hidden, for each of them, the largest change first.
    donors : list of Donor or None
        The nearest rows of the training table; ``None`` where the model was fitted without ``keep_donors``.
    fallback : str or None
        What was done instead, where the method has no prediction.
    text : str
        All of it in words.
    """

    row: Hashable
    column: Hashable
    kind: str
    filled: Any
    interval: tuple[Any, Any] | None
    probabilities: dict[Hashable, float]
    members: list[Member]
    influences: list[Influence]
    donors: list[Donor] | None
    fallback: str | None
    text: str = field(compare=False)

    def __repr__(self) -> str:
        return self.text


#: A cell for the native half: the row, what it is called, and the column, where it is not all of the row.
Cell = tuple[int, str, str | None]


def asked(frame: Frame, cells: Any) -> list[Cell]:
    """The cells that are asked for: a row, a cell, or a list of those."""
    several = cells if isinstance(cells, list) else [cells]
    return [_cell(frame, one) for one in several]


def _cell(frame: Frame, cell: Any) -> Cell:
    if isinstance(cell, tuple) and len(cell) == 2 and not _is_row(frame, cell):
        row, column = cell
        return *_row(frame, row), frame.name_of(column)
    return *_row(frame, cell), None


def _is_row(frame: Frame, label: Hashable) -> bool:
    try:
        frame.place_of_row(label)
    except UsageError:
        return False
    return True


def _row(frame: Frame, row: Hashable) -> tuple[int, str]:
    return frame.place_of_row(row), f"row {row!r}"


def explanations(frame: Frame, text: str, kinds: dict[str, str]) -> list[Explanation]:
    """The explanations of the native half under the labels of the frame."""

    def place(name: str) -> int:
        return frame.names.index(name)

    def value(name: str, it: Any) -> Any:
        if isinstance(it, str):
            return frame.level_labels(place(name), [it])[0]
        if it is not None and kinds[name] == "datetime":
            return np.datetime64(round(it * 1e6), "us")
        return int(it) if it is not None and kinds[name] == "integer" and float(it).is_integer() else it

    def explanation(one: dict[str, Any]) -> Explanation:
        name = one["column"]
        ends = one["interval"]
        levels = frame.level_labels(place(name), [p["level"] for p in one["probabilities"]])
        members = [Member(**member | {"predicted": value(name, member["predicted"])}) for member in one["members"]]
        influences = [
            Influence(
                frame.labels[place(it["column"])],
                value(it["column"], it["value"]),
                value(name, it["without"]),
                it["change"],
                it["probability_change"],
            )
            for it in one["influences"]
        ]
        donors = None if one["donors"] is None else [donor(name, it) for it in one["donors"]]
        return Explanation(
            row=frame.row_label(one["row"]),
            column=frame.labels[place(name)],
            kind=one["kind"],
            filled=value(name, one["filled"]),
            interval=None if ends is None else (value(name, ends["lower"]), value(name, ends["upper"])),
            probabilities={
                level: p["probability"] for level, p in zip(levels, one["probabilities"], strict=True)
            },
            members=members,
            influences=influences,
            donors=donors,
            fallback=one["fallback"],
            text=one["text"],
        )

    def donor(name: str, it: dict[str, Any]) -> Donor:
        deciding = {frame.labels[place(c["column"])]: value(c["column"], c["value"]) for c in it["deciding"]}
        return Donor(it["row"], it["proximity"], value(name, it["value"]), deciding)

    return [explanation(one) for one in json.loads(text)]
