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
#     order: 3
#     studies: [bridge, updates, pga]
#     claims: []
# ---

# %% [markdown]
# # Is the computation in the residual the one that the readout cannot see?
#
# One paper finds a block's real work in the residual of a tokenwise map. The other finds that in
# many models the readout does not see how the middle layers arrange their tokens. Do they look at
# the same thing from two sides? Here each block's residual and tokenwise update are split into the
# part inside the readout subspace and the dark rest, and set beside the readout's $z$ and the
# effect on the output.

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
study = studies.BridgeStudy(session)
table, correlations = study.table(), study.correlations()
profile = study.pga.profile()
z = profile.by_layer(level=1)
z = z[z["point"] != "out"].iloc[1:].rename(columns={"z": "value"})
name, depth = session.files.name, session.states.depth
report.show_notices(session.states.facts)


def at(quantity):
    return table[table["quantity"] == quantity]


# %% [markdown]
# Top: the share of squared length inside the readout's $k$ directions; the dark share is the rest,
# and the dotted line is what a random direction would have. Middle: $z$ of the state above the
# block, at CCR-1. Bottom: does leaving out a residual that lies more in the readout change the
# output more? The correlation is over tokens, once plain and once given the residual's relative
# length and $|h'|$.

# %%
figure, (top, middle, bottom) = plt.subplots(3, 1, sharex=True, figsize=(6.0, 7.6))
for quantity, label, colour in (
    ("readout_share_residual", "residual r", report.VERMILION),
    ("readout_share_update", "update T(h) - h", report.BLUE),
):
    report.curve(top, at(quantity)["block"], at(quantity), colour, label)
top.axhline(study.chance, color=report.GREY, linestyle=":", linewidth=1)
top.set_ylim(bottom=0)
top.set_ylabel("share in the readout")
for level in (-2, 2):
    middle.axhline(level, color=report.GREY, linestyle=":", linewidth=1)
report.curve(middle, z["depth"] - 1, z, report.GREEN, "z")
middle.set_ylabel("z above the block")
for quantity, label, colour in (
    ("spearman_readout_share_kl", "plain", report.GREY),
    ("partial_spearman_readout_share_kl", "partial", report.VERMILION),
):
    report.curve(bottom, at(quantity)["block"], at(quantity), colour, label)
bottom.axhline(0, color=report.GREY, linewidth=0.8)
bottom.set_ylabel(r"$\rho$ of share and KL")
report.block_axis(bottom, depth)
report.spread_labels(top, gap=0.09)
report.spread_labels(bottom, gap=0.09)
residual, update = at("readout_share_residual")["value"], at("readout_share_update")["value"]
report.publish_figure(
    figure,
    table,
    name="residual_in_readout",
    model=name,
    caption=(
        f"Readout shares (k = {profile.readout_dim}) of residual and tokenwise update by block of "
        f"{name}, map class orthogonal; z of the layer above; and Spearman over tokens of the "
        "residual's readout share and KL. Medians with 95 % intervals."
    ),
    alt=(
        f"Three panels against block for {name}. The residual's readout share runs from "
        f"{residual.min():.2f} to {residual.max():.2f}, that of the tokenwise update from "
        f"{update.min():.2f} to {update.max():.2f}; a random direction has {study.chance:.2f}."
    ),
    provenance=report.provenance(study.inputs(), **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What is measured here
#
# Neither paper asks this question. Over the blocks, a negative correlation with $z$ would say that
# the residual moves into the readout where the readout loses the arrangement; a positive one, that
# both go together.

# %%
QUANTITIES = {
    "readout_share_residual": "readout share of the residual",
    "readout_share_update": "readout share of the tokenwise update",
    "readout_share_residual_minus_update": "residual's share less the update's",
}
shown = correlations.assign(
    cell=[
        report.with_interval(row.value, row.ci_low, row.ci_high)
        for row in correlations.itertuples()
    ]
).pivot(index="quantity", columns="against", values="cell")
shown = shown.loc[list(QUANTITIES), ["z", "kl"]].rename(index=QUANTITIES)
columns = {"z": "Spearman over blocks with z", "kl": "with median KL"}
report.show_table(shown.rename(columns=columns).reset_index(names="by block"))
