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
#     scope: per model
#     order: 5
#     studies: [pga]
#     claims: [R5]
# ---

# %% [markdown]
# # Is the organisation lost, or hidden behind a few directions?
#
# A low $z$ can mean two things: the layer does not arrange its tokens for the readout, or it does
# and a few very strong directions drown that out, since distances are dominated by whatever
# varies most. Removing the strongest principal components one handful at a time tells the two
# apart. What comes back was masked; what does not was never there.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
readout_dim: int = 0  # readout dimension k; 0 for the default rule
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt
import pandas as pd

from layergeom import report, studies

report.use_style()
session = studies.open_session(model, corpus, sizes, seed, dtype, readout_dim)
profile = studies.PGAStudy(session).profile()
table = pd.concat([profile.by_layer(level) for level in profile.levels], ignore_index=True)
name, last = session.files.name, profile.depth
report.show_notices(session.states.facts)

# %% [markdown]
# Each curve removes the mean and the given number of leading principal components (CCR-0 to
# CCR-10) before distances are taken. All use the same tokens and the same random subspaces, so
# the curves differ by the removal alone.

# %%
COLOURS = dict(
    zip(profile.levels, (report.GREY, report.BLUE, report.ORANGE, report.VERMILION), strict=True)
)
figure, axis = plt.subplots(figsize=(6, 4.4))
for bound in (-2, 2):
    axis.axhline(bound, color=report.GREY, linestyle=":", linewidth=1)
axis.axhline(0, color=report.GREY, linewidth=0.8)
for level, colour in COLOURS.items():
    rows = table[table["level"] == level]
    hidden, out = rows[rows["point"] != "out"], rows[rows["point"] == "out"].iloc[0]
    report.curve(axis, hidden["depth"], hidden.rename(columns={"z": "value"}), colour, "")
    report.point(axis, last + 1, out, colour, f"CCR-{level}")
report.spread_labels(axis)
axis.set_ylabel("z (standard deviations)")
report.layer_axis(axis, last)
spans = table.groupby("level")["z"].agg(["min", "max"])
report.publish_figure(
    figure,
    table,
    name="masking",
    model=name,
    caption=(
        f"z by layer of {name} after removing 0, 1, 5 and 10 principal components, "
        f"k = {profile.readout_dim}, with 95 % intervals. Diamonds: after the final norm."
    ),
    alt=(
        f"Four curves of z against layer for {name}. "
        + " ".join(
            f"CCR-{level} runs from {row['min']:.1f} to {row['max']:.1f}."
            for level, row in spans.iterrows()
        )
    ),
    provenance=report.provenance(profile.inputs, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
counts = []
for level in profile.levels:
    rows = table[(table["level"] == level) & (table["point"] != "out")].iloc[1:]
    above, under = int((rows["ci_low"] > 0).sum()), int((rows["ci_high"] < 0).sum())
    counts.append(f"CCR-{level}: {above} of {len(rows)} above 0 by interval, {under} below")
report.show_table(report.comparison({"R5": f"d = {session.states.width}. " + "; ".join(counts)}))
