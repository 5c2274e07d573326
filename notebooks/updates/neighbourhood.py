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
#     order: 11
#     studies: [neighbourhood]
#     claims: [U8]
# ---

# %% [markdown]
# # How much hangs on the choice of the neighbours?
#
# A local fit has knobs: how many neighbours, how rich the map, by which distance they are chosen,
# and whether a token may learn from other occurrences of the same word. Each is turned here while
# the others stay, at a few blocks spread over the depth. A finding that moves with a knob belongs
# to the knob.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt

from layergeom import report, studies

report.use_style()
session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.NeighbourhoodStudy(session)
table = study.table()
name, facts = session.files.name, study.facts
report.show_notices(session.states.facts)

# %% [markdown]
# Left, the relative error $|r|/|h'|$; right, the angle between $T(h)$ and $r$ in degrees. The rank
# is that of the class `low_rank`; everything else is the class `orthogonal`. The default is drawn
# in black. At block 0 equal tokens are in equal states, so that leaving a token's own copies out
# makes the largest difference there.

# %%
CHOICES = {
    "neighbours": "neighbours K",
    "rank": "rank q",
    "metric": "distance",
    "same_token": "copies of the token",
}
QUANTITIES = {
    "rel_err_state": "relative error",
    "angle_tokenwise_residual_state": "angle (degrees)",
}
COLOURS = (report.BLUE, report.VERMILION, report.GREEN)
figure, axes = plt.subplots(4, 2, sharex=True, sharey="col", figsize=(6.6, 8.6))
for row, (choice, title) in zip(axes, CHOICES.items(), strict=True):
    of_choice = table[table["choice"] == choice]
    others = list(of_choice[~of_choice["default"]]["alternative"].unique())
    for (alternative, default), rows in of_choice.groupby(["alternative", "default"], sort=False):
        colour = "black" if default else COLOURS[others.index(alternative)]
        for axis, quantity in zip(row, QUANTITIES, strict=True):
            shown = rows[rows["quantity"] == quantity]
            label = alternative if axis is row[1] else ""
            report.curve(axis, shown["block"], shown, colour, label)
    row[0].set_title(title)
    report.spread_labels(row[1], gap=0.16)
for axis in axes[-1]:
    axis.set_xlabel("block")
    axis.set_xticks(facts["blocks"])
for axis, label in zip(axes[0], QUANTITIES.values(), strict=True):
    axis.annotate(
        label,
        (0, 1),
        xytext=(0, 22),
        textcoords="offset points",
        weight="bold",
        xycoords="axes fraction",
        annotation_clip=False,
    )
errors = table[table["quantity"] == "rel_err_state"]
spans = errors.groupby(["choice", "block"], sort=False)["value"].agg(lambda v: v.max() - v.min())
spans = spans.groupby("choice", sort=False).max()
report.publish_figure(
    figure,
    table,
    name="neighbourhood",
    model=name,
    caption=(
        "Relative error and angle of T(h) and r under other neighbourhoods, at "
        f"{len(facts['blocks'])} blocks of {name} and {facts['tokens']} query tokens; black: the "
        "default. Medians over tokens with 95 % bootstrap intervals over sequences."
    ),
    alt=(
        f"Eight small panels for {name}, one row a choice. The relative error differs at most by "
        + ", ".join(f"{span:.2f} ({CHOICES[choice]})" for choice, span in spans.items())
        + " at any block."
    ),
    provenance=report.provenance(study.inputs(0), blocks=facts["blocks"], **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
report.show_table(
    report.comparison(
        {
            "U8": f"at {len(facts['blocks'])} blocks and {facts['tokens']} tokens, the relative "
            "error moves at most by "
            + ", ".join(f"{span:.2f} ({CHOICES[choice]})" for choice, span in spans.items())
        }
    )
)
