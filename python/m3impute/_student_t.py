"""Student's t distribution, for the intervals and p-values of pooled estimates: the package needs numpy only.

The probability beyond ``t`` on both sides is the regularised incomplete beta function ``I_x(df / 2, 1 / 2)`` at
``x = df / (df + t**2)`` (Abramowitz and Stegun, 26.7.1). It is computed by the continued fraction of Didonato and
Morris (1992), which loses no digits where ``df`` is large, with the algorithm of Lentz.
"""

from __future__ import annotations

import math
from statistics import NormalDist

#: Where a term of the continued fraction would be zero, it is this.
_TINY = 1e-300

#: Terms of the continued fraction. With 1 / 2 as the second parameter it needs fewer than a hundred.
_TERMS = 500


def two_sided(t: float, df: float) -> float:
    """The probability that a Student t variable is farther from 0 than `t`.

    Parameters
    ----------
    t : float
        The statistic.
    df : float
        The degrees of freedom; infinite for a normal variable.

    Returns
    -------
    probability : float
        The p-value of a two-sided test, accurate in the tails too.

    Examples
    --------
    >>> from m3impute._student_t import two_sided
    >>> round(two_sided(2.228139, 10), 6)
    0.05
    """
    t = abs(t)
    if math.isinf(df):
        return math.erfc(t / math.sqrt(2))
    if math.isinf(t):
        return 0.0
    a, ratio = df / 2, t * t / df
    if ratio == 0.0:
        return 1.0
    # x = 1 / (1 + ratio) and y = 1 - x, neither by a difference that would lose digits.
    x, y = 1 / (1 + ratio), ratio / (1 + ratio) if math.isfinite(ratio) else 1.0
    log_x = -math.log1p(ratio) if math.isfinite(ratio) else -2 * math.log(t) + math.log(df)
    log_y = math.log(y) if ratio < 1 else -math.log1p(1 / ratio)
    front = math.exp(a * log_x + log_y / 2 + _log_inverse_beta(a))
    # The fraction converges fast on one side of the mean of the beta distribution.
    if y > 1.5 / (a + 2.5):
        return front / _fraction(a, 0.5, x, y)
    return 1 - front / _fraction(0.5, a, y, x)


def two_sided_quantile(probability: float, df: float) -> float:
    """The `t` beyond which a Student t variable lies with this probability, on both sides together.

    Parameters
    ----------
    probability : float
        Above 0 and below 1: 0.05 for the ends of a 95 % interval.
    df : float
        The degrees of freedom; infinite for a normal variable.

    Returns
    -------
    t : float
        Above 0; infinite where it is too large for a float.

    Examples
    --------
    >>> from m3impute._student_t import two_sided_quantile
    >>> round(two_sided_quantile(0.05, 10), 6)
    2.228139
    """
    normal = NormalDist().inv_cdf(1 - probability / 2)
    if math.isinf(df):
        return normal
    # Newton's method on the logarithms of both: there the tail is concave, so after one step it comes from above.
    log_t, target = math.log(normal), math.log(probability)
    for _ in range(200):
        t = math.exp(log_t)
        tail = two_sided(t, df)
        if tail <= 0.0:  # beyond the smallest float
            return math.inf
        slope = -2 * math.exp(log_t + _log_density(t, df)) / tail
        step = (target - math.log(tail)) / slope
        log_t += step
        if log_t > 700:
            return math.inf
        if abs(step) < 1e-15:
            break
    return math.exp(log_t)


def _log_density(t: float, df: float) -> float:
    ratio = t * t / df
    log = math.log1p(ratio) if math.isfinite(ratio) else 2 * math.log(t) - math.log(df)
    return _log_inverse_beta(df / 2) - math.log(df) / 2 - (df + 1) / 2 * log


def _log_inverse_beta(a: float) -> float:
    """The logarithm of ``1 / B(a, 1 / 2)``."""
    if a < 50:
        return math.lgamma(a + 0.5) - math.lgamma(a) - math.lgamma(0.5)
    # The difference of two large logarithms would lose digits: Stirling's series of the ratio, to 1e-15 at 50.
    series = -1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)
    return 0.5 * math.log(a) + series - 0.5 * math.log(math.pi)


def _fraction(a: float, b: float, x: float, y: float) -> float:
    """What ``x**a * y**b / B(a, b)`` is divided by for ``I_x(a, b)``; `y` is ``1 - x``."""

    def denominator(m: int) -> float:
        return m + m * (b - m) * x / (a + 2 * m - 1) + (a + m) * (a * y - b * x + 1 + m * (2 - x)) / (a + 2 * m + 1)

    # At 0 the middle term is 0, whatever it is divided by.
    value = _apart(a * (a * y - b * x + 1) / (a + 1))
    c, d = value, 0.0
    for m in range(1, _TERMS):
        numerator = (a + m - 1) * (a + b + m - 1) * m * (b - m) * (x / (a + 2 * m - 1)) ** 2
        below = denominator(m)
        d = 1 / _apart(below + numerator * d)
        c = _apart(below + numerator / c)
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value


def _apart(value: float) -> float:
    """The value, kept away from zero."""
    return value if abs(value) > _TINY else _TINY
