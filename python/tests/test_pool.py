"""Pooled estimates are those of Rubin's rules with the degrees of freedom of Barnard and Rubin."""

import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import m3impute
from m3impute._student_t import two_sided, two_sided_quantile

NAMES = ["(Intercept)", "age", "bmi"]

#: `lm(chl ~ age + bmi)` on the five tables that mice 3.15 makes of its example `nhanes` with seed 123.
ESTIMATES = [
    [56.37390777907736, 32.09314308918950, 3.15762875996323],
    [41.35517483156958, 20.27406610345448, 4.29528376399633],
    [-37.09236016272500, 34.37993612393689, 6.22830092562485],
    [-29.34287611247382, 24.81709584323952, 6.42345394471357],
    [25.85713519816343, 25.96220571401965, 4.79522559370897],
]
ERRORS = [
    [57.81441735291846, 9.22649771289255, 1.78012573984332],
    [51.44037523095291, 8.79043403586040, 1.65077650623774],
    [62.88126579851023, 9.07218290762431, 2.02688893884169],
    [53.33410820558384, 8.38161275121737, 1.70912730741629],
    [53.17221375386805, 8.44477251315413, 1.68549748539546],
]

#: What `summary(pool(fit), "all", conf.int = TRUE)` of mice says of them.
OF_MICE = {
    "estimate": [11.43019630672231, 27.50528937476801, 4.97997859760139],
    "std_error": [72.56055967342239, 10.78499870487338, 2.32219514321692],
    "statistic": [0.157526297456454, 2.550328481944027, 2.144513398087068],
    "df": [8.02042238623968, 9.74810871065138, 7.83503065136671],
    "p_value": [0.8787236923639810, 0.0293851707840986, 0.0650353662002588],
    "lower": [-155.820622033602348, 3.390379656098030, -0.394702504157545],
    "upper": [178.6810146470470, 51.6201990934380, 10.3546596993603],
    "riv": [0.685945817989264, 0.505632904712267, 0.710390551064857],
    "fmi": [0.514504710646629, 0.440026861558893, 0.523258863272162],
    "within": [3122.8968119507031, 77.2540216809016, 3.1528414839657],
    "between": [1785.11500680799031, 32.55181281934897, 1.86645733267878],
    "total": [5265.03482012029144, 116.31619706412039, 5.39259028318023],
}


def test_a_regression_is_pooled_as_by_mice():
    pooled = m3impute.pool(ESTIMATES, np.square(ERRORS), df_complete=22)
    for name, values in OF_MICE.items():
        assert getattr(pooled, name) == pytest.approx(values, rel=1e-12), name
    assert (pooled.draws, pooled.level, pooled.df_complete) == (5, 0.95, 22)


@pytest.mark.parametrize(
    ("df_complete", "df", "fmi"),
    [(58, 16.034717304536315, 0.435589788764194), (None, 29.325480008360962, 0.408344284592809)],
)
def test_numbers_are_pooled_as_by_pool_scalar_of_mice(df_complete, df, fmi):
    pooled = m3impute.pool([3.1, 2.7, 3.6, 2.9, 3.3], [0.25, 0.30, 0.20, 0.28, 0.22], df_complete=df_complete)
    known = (pooled.estimate, pooled.within, pooled.between, pooled.total, pooled.riv, pooled.df, pooled.fmi)
    assert known == pytest.approx((3.12, 0.25, 0.122, 0.3964, 0.5856, df, fmi), rel=1e-13)
    assert all(type(value) is float for value in known)


def test_the_rules_by_hand():
    # Two draws, 1 and 3, each with variance 4: within 4, between 2, total 4 + 1.5 * 2 = 7.
    pooled = m3impute.pool([1.0, 3.0], [4.0, 4.0], level=0.5)
    assert (pooled.estimate, pooled.within, pooled.between, pooled.total) == (2.0, 4.0, 2.0, 7.0)
    assert pooled.riv == 0.75 and pooled.df == pytest.approx((7 / 3) ** 2)
    assert pooled.fmi == pytest.approx((0.75 + 2 / (pooled.df + 3)) / 1.75)
    assert stats.t.cdf(pooled.upper, pooled.df, 2.0, math.sqrt(7)) == pytest.approx(0.75)
    assert pooled.lower + pooled.upper == pytest.approx(4.0)


def test_draws_that_agree_leave_the_analysis_as_it_was():
    pooled = m3impute.pool([2.0] * 3, [1.0] * 3)
    assert (pooled.df, pooled.riv, pooled.fmi) == (math.inf, 0.0, 0.0)
    assert pooled.upper == pytest.approx(2 + 1.959963984540054) and pooled.p_value == pytest.approx(0.04550026389635842)
    assert m3impute.pool([2.0] * 3, [1.0] * 3, df_complete=10).df == pytest.approx(10 * 11 / 13)


def test_names_of_coefficients_are_kept_whatever_their_order():
    series = [pd.Series(values, index=NAMES) for values in ESTIMATES]
    squares = [pd.Series(np.square(values), index=NAMES) for values in ERRORS]
    pooled = m3impute.pool(series, squares, df_complete=22)
    assert list(pooled.estimate.index) == NAMES and pooled.p_value["age"] == pytest.approx(OF_MICE["p_value"][1])
    other_order = [series[0], *(one[::-1] for one in series[1:])]
    turned = m3impute.pool(other_order, [one[::-1] for one in squares], df_complete=22)
    frames = m3impute.pool(pd.DataFrame(series), pd.DataFrame(squares), df_complete=22)
    for other in (turned, frames):
        pd.testing.assert_frame_equal(other.to_frame(), pooled.to_frame())
    assert pooled.to_frame().loc["bmi", "fmi"] == pytest.approx(OF_MICE["fmi"][2])


def test_fitted_results_bring_errors_and_degrees_of_freedom():
    fits = [
        SimpleNamespace(params=pd.Series(q, NAMES), bse=pd.Series(s, NAMES), df_resid=22.0)
        for q, s in zip(ESTIMATES, ERRORS, strict=True)
    ]
    pooled = m3impute.pool(fits)
    assert pooled.df_complete == 22 and pooled.df.to_list() == pytest.approx(OF_MICE["df"])
    assert m3impute.pool(fits, df_complete=math.inf).df["age"] > pooled.df["age"]
    fits[3].df_resid = 20.0
    assert m3impute.pool(fits).df_complete == 20
    with pytest.raises(m3impute.UsageError, match="variances: expected none beside fitted results"):
        m3impute.pool(fits, ERRORS)
    with pytest.raises(m3impute.UsageError, match="expected fitted results only, got `float` for draw 6"):
        m3impute.pool([*fits, 1.0])


def test_a_regression_of_statsmodels_is_pooled():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    fits = [sm.OLS(x + rng.normal(size=50), sm.add_constant(pd.Series(x, name="x"))).fit() for _ in range(4)]
    pooled = m3impute.pool(fits)
    assert pooled.df_complete == 48 and list(pooled.estimate.index) == ["const", "x"]
    assert pooled.estimate["x"] == pytest.approx(np.mean([fit.params["x"] for fit in fits]))
    arrays = [sm.OLS(fit.model.endog, fit.model.exog).fit() for fit in fits]
    assert m3impute.pool(arrays).estimate == pytest.approx(pooled.estimate.to_numpy())


def test_a_pooled_result_prints_as_a_table():
    series = [pd.Series(values, index=NAMES) for values in ESTIMATES]
    pooled = m3impute.pool(series, np.square(ERRORS), df_complete=22, level=0.9)
    lines = repr(pooled).splitlines()
    assert lines[0] == "5 draws pooled by Rubin's rules, 90 % confidence intervals"
    assert lines[2].split() == ["estimate", "std_error", "df", "p_value", "lower", "upper", "fmi"]
    assert lines[4].split() == ["age", "27.505", "10.785", "9.7", "0.0294", "7.9065", "47.104", "0.440"]
    assert repr(m3impute.pool([9.0, 9.1], [0.01, 0.01])).splitlines()[3].split()[3] == "<0.0001"
    unnamed = m3impute.pool(ESTIMATES, np.square(ERRORS))
    assert [line.split()[0] for line in repr(unnamed).splitlines()[3:]] == ["0", "1", "2"]


def _series(values):
    return pd.Series(values, index=NAMES)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([1.0], [1.0]), {}, "UsageError", "estimates: expected those of at least 2 draws, got 1"),
        (([], []), {}, "UsageError", "estimates: expected those of at least 2 draws, got 0"),
        (([1.0, 2.0],), {}, "UsageError", "variances: expected a variance for each estimate, got none"),
        ((ESTIMATES, [1.0] * 5), {}, "UsageError", r"expected the shape of the estimates, \(5, 3\), got \(5,\)"),
        (([[1.0, 2.0], [1.0]], [[1.0, 1.0]] * 2), {}, "UsageError", r"estimates: expected numbers, or as many numbers"),
        ((["a", "b"], [1.0, 1.0]), {}, "UsageError", "estimates: expected numbers.*got `.'a', 'b'.`"),
        ((ESTIMATES, np.ones((5, 3, 3))), {}, "UsageError", r"variances: expected an array \[draws\] or"),
        ((3.0, 1.0), {}, "UsageError", r"estimates: expected an array \[draws\].*got the shape \(\)"),
        (([1.0, math.nan], [1.0, 1.0]), {}, "DataError", "estimates: expected finite numbers, got `nan` in draw 2"),
        (
            (pd.DataFrame(ESTIMATES, columns=NAMES), -np.square(ERRORS)),
            {},
            "DataError",
            r"expected finite numbers of at least 0, got `-3342.5.*` for coefficient `\(Intercept\)` in draw 1",
        ),
        (([1.0, 2.0], [1.0, math.inf]), {}, "DataError", "variances: .*got `inf` in draw 2"),
        (([[1.0], [2.0]], [[0.0], [0.0]]), {}, "DataError", "above 0, got 0 for coefficient `1` in every draw"),
        (
            ([_series([1, 2, 3]), _series([1, 2, 3]).drop("age")], np.ones((2, 3))),
            {},
            "UsageError",
            "estimates: expected the coefficients of draw 1 in every draw, got no `age` in draw 2",
        ),
        (
            ([_series([1, 2, 3]).drop("age"), _series([1, 2, 3])], np.ones((2, 3))),
            {},
            "UsageError",
            "got also `age` in draw 2",
        ),
        (([1.0, 2.0], [1.0, 1.0]), {"level": 95}, "UsageError", "level: expected a number between 0 and 1, got `95`"),
        (([1.0, 2.0], [1.0, 1.0]), {"df_complete": 0}, "UsageError", "df_complete: expected a number above 0, got `0`"),
        (([1.0, 2.0], [1.0, 1.0]), {"df_complete": math.nan}, "UsageError", "df_complete: expected a number above 0"),
    ],
)
def test_what_cannot_be_pooled_says_why(arguments, options, error, message):
    with pytest.raises(getattr(m3impute, error), match=message) as raised:
        m3impute.pool(*arguments, **options)
    assert raised.value.hint


@pytest.mark.parametrize("df", [0.5, 1, 2, 3.7, 9, 29.3, 99, 101, 1e4, 1e8, 1e12, math.inf])
def test_the_t_distribution_is_that_of_scipy(df):
    of = stats.norm if math.isinf(df) else stats.t(df)
    for t in [1e-3, 0.3, 1, 1.7, 1.75, 2.5, 5, 12, 30]:
        assert two_sided(t, df) == pytest.approx(2 * of.sf(t), rel=1e-11) == two_sided(-t, df)
    for share in [0.999, 0.5, 0.1, 0.05, 0.01, 1e-6]:
        assert two_sided_quantile(share, df) == pytest.approx(of.isf(share / 2), rel=1e-10)


def test_the_t_distribution_at_its_ends():
    assert (two_sided(0.0, 5), two_sided(math.inf, 5), two_sided(1e-200, 5)) == (1.0, 0.0, 1.0)
    assert two_sided_quantile(0.05, 1e-3) == math.inf
    assert two_sided(1e200, 1) == pytest.approx(2e-200 / math.pi)


def test_pooling_needs_neither_scipy_nor_pandas():
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['scipy', 'pandas', 'statsmodels']))\n"
        "import m3impute\n"
        "pooled = m3impute.pool([[1.0, 2.0], [1.5, 2.5]], [[1.0, 1.0], [1.0, 1.0]])\n"
        "print(pooled)\n"
        "try:\n"
        "    pooled.to_frame()\n"
        "except m3impute.UsageError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "to_frame: expected pandas, which is not installed" in done.stdout, done.stderr
