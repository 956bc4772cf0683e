"""Pooling: one estimate from the estimates of several completed tables, by Rubin's rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ._messages import DataError, UsageError
from ._results import _aligned
from ._student_t import two_sided, two_sided_quantile

#: The columns of a table of pooled estimates that are printed; :meth:`Pooled.to_frame` has all.
_PRINTED = ("estimate", "std_error", "df", "p_value", "lower", "upper", "fmi")


@dataclass(repr=False, eq=False)
class Pooled:
    """What :func:`pool` makes of the estimates of several completed tables.

    Each quantity is a number where numbers were pooled, an array where vectors were, and a Series of pandas with the
    names of the coefficients where those had names. Printed, it is a table to read.

    Attributes
    ----------
    estimate : float, array or Series
        The mean of the estimates.
    std_error : float, array or Series
        The square root of the total variance.
    statistic : float, array or Series
        The estimate divided by its standard error.
    df : float, array or Series
        The degrees of freedom of its t distribution (Barnard and Rubin, 1999).
    p_value : float, array or Series
        Of the two-sided test that the quantity is 0.
    lower, upper : float, array or Series
        The confidence interval of ``level``.
    fmi : float, array or Series
        The fraction of missing information: the share of the uncertainty that comes from the missing values.
    riv : float, array or Series
        The relative increase in variance that is due to the missing values.
    within : float, array or Series
        The variance within: the mean of the variances.
    between : float, array or Series
        The variance between: that of the estimates.
    total : float, array or Series
        ``within + (1 + 1 / draws) * between``.
    draws : int
        How many estimates were pooled.
    level : float
        The level of the confidence intervals.
    df_complete : float
        The degrees of freedom that the analysis has in a table without missing values; infinite where not given.
    """

    estimate: Any
    std_error: Any
    statistic: Any
    df: Any
    p_value: Any
    lower: Any
    upper: Any
    fmi: Any
    riv: Any
    within: Any
    between: Any
    total: Any
    draws: int
    level: float
    df_complete: float

    def to_frame(self) -> Any:
        """The quantities as a data frame of pandas.

        Returns
        -------
        DataFrame
            A row a coefficient, a column a quantity.

        Raises
        ------
        UsageError
            When pandas is not installed.

        Examples
        --------
        >>> import m3impute
        >>> pooled = m3impute.pool([3.1, 2.7, 3.6], [0.25, 0.30, 0.20])
        >>> list(pooled.to_frame().columns[:3])
        ['estimate', 'std_error', 'statistic']
        """
        try:
            import pandas as pd
        except ImportError:
            raise UsageError(
                "to_frame: expected pandas, which is not installed", "the fields of the result are numbers and arrays"
            ) from None
        columns = {name: np.atleast_1d(np.asarray(getattr(self, name))) for name in self._quantities()}
        return pd.DataFrame(columns, index=getattr(self.estimate, "index", None))

    def _quantities(self) -> list[str]:
        return [field.name for field in fields(self) if field.name not in ("draws", "level", "df_complete")]

    def __repr__(self) -> str:
        columns = {name: np.atleast_1d(np.asarray(getattr(self, name))) for name in _PRINTED}
        labels = [""] if np.ndim(self.estimate) == 0 else range(len(columns["estimate"]))
        rows = [["", *_PRINTED]]
        for at, label in enumerate(getattr(self.estimate, "index", labels)):
            rows.append([str(label), *(_figure(name, float(columns[name][at])) for name in _PRINTED)])
        head = f"{self.draws} draws pooled by Rubin's rules, {100 * self.level:g} % confidence intervals"
        return "\n".join([head, "", *_aligned(rows, right=set(range(1, len(_PRINTED) + 1)))])


def _figure(name: str, value: float) -> str:
    if name == "p_value":
        return "<0.0001" if value < 1e-4 else f"{value:.4f}"
    if name == "fmi":
        return f"{value:.3f}"
    if name == "df":
        return f"{value:.1f}"
    return f"{value:.5g}"


def pool(
    estimates: Any, variances: Any = None, *, df_complete: float | None = None, level: float = 0.95
) -> Pooled:
    """Pool the estimates of an analysis that ran on several completed tables: Rubin's rules.

    The degrees of freedom are those of Barnard and Rubin (1999), as in ``pool`` of the R package mice.

    Parameters
    ----------
    estimates : sequence, array, DataFrame, or list of fitted results
        An estimate for each draw: a number; a vector of coefficients (together an array ``[draws, coefficients]``); a
        Series of pandas, whose index names the coefficients; or a fitted model with ``params`` and ``bse``, as those of
        statsmodels. Of a DataFrame, each row is a draw.
    variances : as ``estimates``, optional
        Their variances: the squares of the standard errors. Not with fitted results, which know their own.
    df_complete : float, optional
        The degrees of freedom that the analysis has in a table without missing values (``dfcom`` in mice): in a
        regression, rows minus coefficients. Infinite where not given, which makes intervals of small tables too narrow;
        fitted results with ``df_resid`` know it.
    level : float, default 0.95
        The level of the confidence intervals.

    Returns
    -------
    Pooled
        The estimate, its standard error, test and confidence interval, and how much of the uncertainty comes from the
        missing values. Printed, it is a table to read.

    Raises
    ------
    UsageError
        When there are fewer than two draws, shapes do not agree, or an argument is out of range.
    DataError
        When an estimate or a variance is not finite, or a variance is negative.

    See Also
    --------
    Imputer.draw : complete a table several times.

    Examples
    --------
    >>> import m3impute
    >>> pooled = m3impute.pool([3.1, 2.7, 3.6, 2.9, 3.3], [0.25, 0.30, 0.20, 0.28, 0.22], df_complete=58)
    >>> pooled
    5 draws pooled by Rubin's rules, 95 % confidence intervals
    <BLANKLINE>
      estimate  std_error    df  p_value   lower   upper    fmi
          3.12     0.6296  16.0   0.0001  1.7855  4.4545  0.436
    >>> round(pooled.riv, 4)
    0.5856
    """
    if not isinstance(level, (int, float, np.number)) or not 0 < level < 1:
        raise UsageError(f"level: expected a number between 0 and 1, got `{level}`", "95 % is `level=0.95`")
    estimates, variances, known_df = _of_results(estimates, variances)
    q, like = _matrix("estimates", estimates)
    u, _ = _matrix("variances", variances, like)
    if u.shape != q.shape:
        raise UsageError(
            f"variances: expected the shape of the estimates, {q.shape}, got {u.shape}",
            "a variance for each estimate: the square of its standard error",
        )
    m = len(q)
    if m < 2:
        raise UsageError(
            f"estimates: expected those of at least 2 draws, got {m}",
            "complete the table several times, as in `imputer.draw(table, n=20)`, and analyse each completed table",
        )
    _check_values("estimates", q, like)
    _check_values("variances", u, like)
    complete = _degrees(known_df if df_complete is None else df_complete)

    estimate, within, between = q.mean(axis=0), u.mean(axis=0), q.var(axis=0, ddof=1)  # [k] each
    extra = (1 + 1 / m) * between
    total = within + extra
    share = extra / total  # of the total variance, due to missing values
    observed = math.inf if math.isinf(complete) else (complete + 1) / (complete + 3) * complete * (1 - share)
    with np.errstate(divide="ignore"):
        df = 1 / (share**2 / (m - 1) + 1 / np.asarray(observed))
    riv = extra / within
    std_error = np.sqrt(total)
    statistic = estimate / std_error
    half = np.array([two_sided_quantile(1 - level, one) for one in np.atleast_1d(df)]).reshape(df.shape) * std_error
    p_value = np.array([two_sided(t, v) for t, v in zip(np.atleast_1d(statistic), np.atleast_1d(df), strict=True)])
    quantities = {
        "estimate": estimate,
        "std_error": std_error,
        "statistic": statistic,
        "df": df,
        "p_value": p_value.reshape(df.shape),
        "lower": estimate - half,
        "upper": estimate + half,
        "fmi": (riv + 2 / (df + 3)) / (riv + 1),
        "riv": riv,
        "within": within,
        "between": between,
        "total": total,
    }
    named = {name: _as(like, values) for name, values in quantities.items()}
    return Pooled(**named, draws=m, level=float(level), df_complete=complete)


def _of_results(estimates: Any, variances: Any) -> tuple[Any, Any, float]:
    """Estimates and variances, from fitted results where those are given, and the degrees of freedom that they know."""
    is_list = isinstance(estimates, Sequence) and not isinstance(estimates, str)
    if not is_list or not any(hasattr(one, "params") and hasattr(one, "bse") for one in estimates):
        if variances is None:
            raise UsageError(
                "variances: expected a variance for each estimate, got none",
                "pass the squares of the standard errors, or a list of fitted results of statsmodels alone",
            )
        return estimates, variances, math.inf
    if variances is not None:
        raise UsageError("variances: expected none beside fitted results, which know their own")
    for at, one in enumerate(estimates, 1):
        if not (hasattr(one, "params") and hasattr(one, "bse")):
            raise UsageError(f"estimates: expected fitted results only, got `{type(one).__name__}` for draw {at}")
    known = [float(one.df_resid) for one in estimates if getattr(one, "df_resid", None) is not None]
    # Every table has the same rows; where analyses drop some of them, the smallest number is the careful one.
    df = min(known) if len(known) == len(estimates) else math.inf
    return [one.params for one in estimates], [one.bse**2 for one in estimates], df


def _matrix(what: str, given: Any, like: Any = None) -> tuple[np.ndarray, Any]:
    """What was given as an array `[draws]` or `[draws, coefficients]`, and a Series that has the names, if any has.

    Names are those of `like` where it has some: values with names are put in its order.
    """
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        given = [given.iloc[at] for at in range(len(given))]
    if isinstance(given, Sequence) and given and all(_has_names(one) for one in given):
        like = given[0] if like is None else like
        given = [_in_order(what, one, like, at) for at, one in enumerate(given, 1)]
    else:
        like = None if like is None or not _has_names(like) else like
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"{what}: expected numbers, or as many numbers in each draw, got {_short(given)}",
            "every completed table needs the same analysis, with the same coefficients",
        ) from None
    if array.ndim not in (1, 2):
        raise UsageError(
            f"{what}: expected an array [draws] or [draws, coefficients], got the shape {array.shape}",
            "of a covariance matrix, pass the diagonal",
        )
    return array, like


def _has_names(one: Any) -> bool:
    return hasattr(one, "index") and hasattr(one, "to_numpy") and not callable(one.index) and np.ndim(one) == 1


def _in_order(what: str, one: Any, like: Any, draw: int) -> np.ndarray:
    """The values of a Series in the order of another one's names."""
    own, names = list(one.index), list(like.index)
    if own != names:
        lacking = [name for name in names if name not in own] or [name for name in own if name not in names]
        if lacking or len(own) != len(names):
            there = "no" if lacking and lacking[0] in names else "also"
            name = lacking[0] if lacking else own[-1]
            raise UsageError(
                f"{what}: expected the coefficients of draw 1 in every draw, got {there} `{name}` in draw {draw}",
                "a level that some draws lack may be the reason: give the column the same categories in every table",
            )
        one = one.loc[names]
    values: np.ndarray = one.to_numpy()
    return values


def _check_values(what: str, values: np.ndarray, like: Any) -> None:
    """Fails where a value is not finite or, of variances, negative."""
    bad = ~np.isfinite(values)
    expected = "finite numbers"
    hint = "an analysis that failed on one completed table cannot be pooled: look at that table"
    if what == "variances":
        bad |= values < 0
        expected = "finite numbers of at least 0"
    if bad.any():
        draw, *at = (int(place) for place in np.argwhere(bad)[0])
        value = values[(draw, *at)]
        raise DataError(f"{what}: expected {expected}, got `{value}`{_coefficient(at, like)} in draw {draw + 1}", hint)
    if what == "variances" and (values.max(axis=0) == 0).any():
        at = [] if values.ndim == 1 else [int(np.argmax(values.max(axis=0) == 0))]
        raise DataError(
            f"variances: expected numbers above 0, got 0{_coefficient(at, like)} in every draw",
            "pass the squares of the standard errors; what has no sampling variance needs no pooling",
        )


def _coefficient(at: list[int], like: Any) -> str:
    if not at:
        return ""
    return f" for coefficient `{at[0] + 1 if like is None else like.index[at[0]]}`"


def _degrees(given: Any) -> float:
    if not isinstance(given, (int, float, np.number)) or isinstance(given, bool) or not given > 0:
        raise UsageError(
            f"df_complete: expected a number above 0, got `{given}`",
            "in a regression: the rows of the table minus the coefficients",
        )
    return float(given)


def _as(like: Any, values: np.ndarray) -> Any:
    """The values as what was pooled: a number, an array, or a Series with the names of `like`."""
    if values.ndim == 0:
        return float(values)
    return values if like is None else type(like)(values, index=like.index)


def _short(given: Any) -> str:
    text = repr(given).replace("\n", " ")
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"
