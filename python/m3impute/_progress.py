"""How far the work is: told to a callback, or drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: A callback gets the stage, how many of how many are done, and a note.
Callback = Callable[[str, int, int, str], object]


@contextmanager
def watching(progress: bool | Callback | None, *more: Callback | None) -> Iterator[Callback | None]:
    """A callback that tells everybody who wants to know; `None` where nobody does."""
    bar = _Bar() if progress is True else None
    listeners = [listen for listen in (bar, progress if callable(progress) else None, *more) if listen is not None]

    def tell(stage: str, done: int, total: int, note: str) -> None:
        for listen in listeners:
            listen(stage, done, total, note)

    try:
        yield tell if listeners else None
    finally:
        if bar is not None:
            bar.close()


class _Bar:
    """A bar of tqdm where that is installed, else a line on standard error."""

    def __init__(self) -> None:
        self.stage: str | None = None
        self.bar: Any = None

    def __call__(self, stage: str, done: int, total: int, note: str) -> None:
        if stage != self.stage:
            self.close()
            self.stage = stage
            try:
                from tqdm.auto import tqdm

                self.bar = tqdm(total=total, desc=stage, leave=False)
            except ImportError:
                self.bar = None
        if self.bar is None:
            sys.stderr.write(f"\r{stage} {done}/{total}  {note}\033[K")
            return
        self.bar.total = total
        self.bar.set_postfix_str(note, refresh=False)
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        elif self.stage is not None:
            sys.stderr.write("\r\033[K")
