# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   layergeom:
#     scope: across
#     order: 4
#     studies: []
#     claims: []
# ---

# %% [markdown]
# # What does more of everything cost?
#
# Subspace PGA compares all pairs of tokens, so twice the tokens are four times the pairs. What
# else makes it longer? Here one size at a time is changed and the others are held.

# %% tags=["parameters"]
models: list = ["smollm2-135m"]  # of the book; the times are of made-up layers and of one model
corpus: str = "wikipedia-sample"  # of the book
sizes: str = "default"  # of the book
seed: int = 0  # of the book
dtype: str = "float32"  # of the book
benchmarks: str = "_build/benchmarks"  # where `make bench` wrote
folder: str = "."  # where the figure goes

# %%
from pathlib import Path

import matplotlib.pyplot as plt

from layergeom import report

report.use_style()
found = report.read_benchmarks(Path(benchmarks))
table, names = found.scaling, list(dict.fromkeys(found.scaling["size"]))

# %% [markdown]
# Both axes are logarithmic. The dotted line grows in proportion to the size, the dashed one with
# its square.

# %%
figure, axes = plt.subplots(2, 3, figsize=(7.2, 4.8), sharey=True)
span = (table["fastest"].min() / 2, table["slowest"].max() * 2)
for axis, name in zip(axes.flat, names, strict=False):
    rows = table[table["size"] == name]
    x, seconds = rows["value"].to_numpy(), rows["seconds"].to_numpy()
    for power, style in ((1, ":"), (2, "--")):
        grown = seconds[-1] * (x / x[-1]) ** power
        axis.plot(x, grown, color=report.GREY, linestyle=style, linewidth=1)
    spread = {"ci_low": rows["fastest"], "ci_high": rows["slowest"]}
    report.curve(axis, x, rows.assign(value=seconds, **spread), report.BLUE, "")
    axis.set(xscale="log", yscale="log", xlabel=name, ylim=span)
    axis.set_xticks(x, [f"{value:,}" for value in x], fontsize=8)
    axis.minorticks_off()
for axis in axes[:, 0]:
    axis.set_ylabel("seconds")
for axis in axes.flat[len(names) :]:
    axis.set_axis_off()
report.publish_figure(
    figure,
    table,
    name="scaling",
    model=report.ACROSS,
    caption=(
        f"Seconds of Subspace PGA on {found.where}, by one size at a time. Medians of "
        f"{found.machine['runs']} runs; the band spans all of them. Held: {found.machine['held']}."
    ),
    alt="Small panels of seconds against one size each. "
    + " ".join(
        f"{name}: {rows['seconds'].iloc[0]:.2g} s at {rows['value'].iloc[0]:,}, "
        f"{rows['seconds'].iloc[-1]:.2g} s at {rows['value'].iloc[-1]:,}."
        for name, rows in table.groupby("size", sort=False)
    ),
    provenance=found.machine,
    folder=folder,
)
