"""Whether draws keep the correlation and the spread of columns that are missing together, method by method.

    target/python/bin/python benches/draws.py [--methods m3:fast,miwae,gain] [--seeds 10] [--draws 3]

1,000 rows of `a = z + 0.3 e`, `b = z + 0.3 f` and `c = 0.3 z + g` with standard normal `z`, `e`, `f` and `g`; `a` and
`b` are missing together in 30 % of the rows. Correlation and standard deviation are those of these rows: in the
complete table, and in each draw.
"""

import argparse

import numpy as np
import pandas as pd

import m3impute


def table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=1000)
    a, b = (z + 0.3 * rng.normal(size=1000) for _ in range(2))
    complete = pd.DataFrame({"a": a, "b": b, "c": 0.3 * z + rng.normal(size=1000)})
    return complete, rng.random(1000) < 0.3


def moments(frame: pd.DataFrame, rows: np.ndarray) -> str:
    some = frame.loc[rows, ["a", "b"]]
    return f"{some.corr().iloc[0, 1]:.2f}, {some['a'].std():.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="m3:fast,miwae,gain")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--draws", type=int, default=3)
    asked = parser.parse_args()
    print("| method | seed | truth: correlation, deviation | draws |\n| --- | --- | --- | --- |")
    for method in asked.methods.split(","):
        for seed in range(asked.seeds):
            complete, missing = table(seed)
            holes = complete.mask(missing[:, None] & np.array([True, True, False]))
            imputer = m3impute.Imputer(method, random_state=seed).fit(holes)
            drawn = [moments(one, missing) for one in imputer.draw(holes, n=asked.draws)]
            print(f"| {method} | {seed} | {moments(complete, missing)} | {'; '.join(drawn)} |", flush=True)


if __name__ == "__main__":
    main()
