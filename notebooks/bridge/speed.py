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
#     order: 3
#     studies: []
#     claims: []
# ---

# %% [markdown]
# # How long does each measure take, and against what?
#
# Nobody should have to take fewer tokens for want of patience. Each measure is timed beside the
# plain way of computing it, the one a reader would write first: SciPy's distances and rank
# correlation for every subspace, one dense solve for every token, one forward pass for every
# block and class. Both run in one go on one machine, and their results are compared.

# %% tags=["parameters"]
models: list = ["smollm2-135m"]  # of the book; the times are of made-up layers and of one model
corpus: str = "wikipedia-sample"  # of the book
sizes: str = "default"  # of the book
seed: int = 0  # of the book
dtype: str = "float32"  # of the book
benchmarks: str = "_build/benchmarks"  # where `make bench` wrote
folder: str = "."  # where the table goes

# %%
from pathlib import Path

from layergeom import report

found = report.read_benchmarks(Path(benchmarks))

# %% [markdown]
# Seconds are medians of several runs; what takes the plain way minutes is timed on a part and
# scaled. *Ratio* says how many times longer the plain way takes; only ratios can be compared
# between machines. *Largest difference* is that of the two ways' results. Each row ran in a
# process of its own, whose largest memory is in the last column.

# %%
report.publish_table(
    found.table,
    report.rounded_benchmarks(found.table),
    name="speed",
    model=report.ACROSS,
    caption=f"Ours and the plain way on {found.where}.",
    provenance=found.machine,
    folder=folder,
)

# %% [markdown]
# What else was measured in the same runs, and how:

# %%
notes = found.table.dropna(subset=["note"])
report.show_table(notes[["measure", "threads", "note"]])
