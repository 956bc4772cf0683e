"""How an imputer explains what it fills."""

from __future__ import annotations

import json
from typing import Any

from . import _requests
from ._explanations import Explanation, asked, explanations
from ._progress import watching
from ._tables import Tables


class Explaining(Tables):
    """The explanations of an imputer."""

    def explain(self, X: Any, cells: Any) -> list[Explanation]:
        """Why missing cells of new rows are filled with their values.

        For each cell: the value with its 90 % interval or the probabilities of the levels; what each member of the
        ensemble predicts, with its weight (``m3``); what would fill the cell if one observed cell of its row were
        hidden, the cells that decide first; and the nearest rows of the training table, where the model was fitted with
        ``keep_donors=True``. It costs a few predictions of the row.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Table of pyarrow, or array of numpy
            The rows, with the columns of the training.
        cells : row, (row, column), or list of those
            A row stands for all its missing cells. Rows of pandas are named by their labels in the index, those of
            other tables are counted from 0.

        Returns
        -------
        explanations : list of Explanation
            In the order of the cells. Printing one says in words what it holds.

        Raises
        ------
        UsageError
            When a row or a column is not there, a cell is observed, or a column is not filled.

        Examples
        --------
        >>> import pandas as pd
        >>> from m3impute import Imputer
        >>> train = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [2.0, 4.0, None, 8.0]})
        >>> imputer = Imputer("mice").fit(train)
        >>> new = pd.DataFrame({"x": [4.0], "y": [None]}, index=["new"])
        >>> [explanation] = imputer.explain(new, ("new", "y"))
        >>> [(influence.column, round(influence.change)) for influence in explanation.influences]
        [('x', -3)]
        """
        options: Any = self
        frame = self._new_rows(X)
        wanted = asked(frame, cells)
        with watching(options.progress or bool(options.verbose)) as listen:
            columns, infinite = options._columns(frame)
            known, _ = self.model_.explain(columns, infinite, _requests.run(options, listen), wanted)
        kinds = {column["name"]: column["kind"] for column in json.loads(self.model_.card())["columns"]}
        return explanations(frame, known, kinds)
