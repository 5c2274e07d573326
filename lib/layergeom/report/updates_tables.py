"""The tables of layer updates, as their pages show them."""

from collections.abc import Sequence

import pandas as pd

from layergeom.report.publish import with_interval

#: Rows above the blocks: what is summed up, and to how many digits.
_SUMMED_UP = {
    "rel_err_state": ("error, median", 2),
    "cos_full_tokenwise_state": ("cosine, median", 3),
    "angle_tokenwise_residual_state": ("angle, median (°)", 0),
}


def rounded_classes(table: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Relative errors by block and class, with what they amount to above them.

    Args:
        table: columns ``block``, ``class``, ``undertrained``, ``best`` and the quantities, from
            ``function_classes``.
        order: the classes from left to right.

    Returns:
        A column for each class; the best of a row in bold, an undertrained one with a star.
    """
    of_class = dict(iter(table.groupby("class")))
    columns = {name: of_class[name].sort_values("block") for name in order}
    rows: list[dict[str, str]] = [
        {"block": label, **{n: f"{c[quantity].median():.{digits}f}" for n, c in columns.items()}}
        for quantity, (label, digits) in _SUMMED_UP.items()
    ]
    wins = {name: int(column["best"].sum()) for name, column in columns.items()}
    rows.append(
        {"block": "lowest in", **{n: str(count) if count else "" for n, count in wins.items()}}
    )
    for place, block in enumerate(sorted(table["block"].unique())):
        cells = {name: _cell(column.iloc[place]) for name, column in columns.items()}
        rows.append({"block": str(block), **cells})
    return pd.DataFrame(rows)


def _cell(row: pd.Series) -> str:
    text = f"{row['rel_err_state']:.2f}"
    if row["best"]:
        return f"**{text}**"
    return f"{text}*" if row["undertrained"] else text


def rounded_correlations(
    table: pd.DataFrame, classes: Sequence[str], highest_of: str
) -> pd.DataFrame:
    """Median correlations by model and class, and the highest block of one class.

    Args:
        table: columns ``model``, ``kind``, ``width``, ``layers``, ``class``, ``quantity``
            (``median_spearman_relerr_kl``, ``max_spearman_relerr_kl``), ``value`` and interval.
        classes: the classes from left to right.
        highest_of: the class whose highest block is shown.
    """
    rows = []
    keys = ["model", "kind", "width", "layers"]
    for (model, kind, width, layers), group in table.groupby(keys, sort=False):
        cells = {
            (row["class"], row["quantity"]): with_interval(
                row["value"], row["ci_low"], row["ci_high"]
            )
            for row in group.to_dict("records")
        }
        rows.append(
            {
                "model": model,
                "kind": kind,
                "d": width,
                "L": layers,
                **{name: cells[name, "median_spearman_relerr_kl"] for name in classes},
                f"highest ({highest_of})": cells[highest_of, "max_spearman_relerr_kl"],
            }
        )
    return pd.DataFrame(rows)
