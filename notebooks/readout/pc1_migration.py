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
#     order: 6
#     studies: [pga, components]
#     claims: [R6]
# ---

# %% [markdown]
# # Do the strongest directions turn away from the readout?
#
# Distances between states are ruled by whatever varies most: the leading principal components. If
# those point where the unembedding reads, distances follow the prediction; if they are *dark*
# (orthogonal to the readout), distances follow something else, whatever the rest of the layer
# does. The dark share of a component says which, and its share of the variance says how loud it
# is. A loud dark component is what masks a readout.

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

from layergeom import report, studies

report.use_style()
session = studies.open_session(model, corpus, sizes, seed, dtype, readout_dim)
study = studies.ComponentsStudy(session)
table = study.by_layer()
zone = studies.PGAStudy(session).profile().regime().collapse_zone
name, last = session.files.name, session.states.depth
report.show_notices(session.states.facts)

# %% [markdown]
# Components are ordered by variance anew at every layer, over the same tokens as $z$ and before
# anything is removed. The first three are drawn in colour, with 95 % intervals over disjoint
# samples of tokens; the fourth to the tenth are the thin grey lines. The dashed line is the dark
# share of a direction drawn at random, $1 - k/d$: above it a component avoids the readout.

# %%
COLOURS = {1: report.VERMILION, 2: report.BLUE, 3: report.GREEN}


def shares(component, kind):
    rows = table[table["component"] == component]
    columns = {f"{kind}_share": "value", f"{kind}_low": "ci_low", f"{kind}_high": "ci_high"}
    rows = rows.rename(columns=columns).assign(z=lambda found: found["value"])
    return rows[rows["point"] != "out"], rows[rows["point"] == "out"].iloc[0]


figure, axes = plt.subplots(2, 1, sharex=True, figsize=(6, 6))
for axis, kind in zip(axes, ("dark", "variance"), strict=True):
    for component in range(table["component"].max(), 0, -1):
        hidden, out = shares(component, kind)
        if component in COLOURS:
            report.curve(axis, hidden["depth"], hidden, COLOURS[component], "")
            report.point(axis, last + 1, out, COLOURS[component], f"PC {component}")
        else:
            axis.plot(hidden["depth"], hidden["value"], color=report.GREY, linewidth=0.6)
    if zone:
        axis.axvspan(zone[0] - 0.5, zone[1] + 0.5, color=report.VERMILION, alpha=0.08, linewidth=0)
axes[0].axhline(study.random, color=report.GREY, linestyle="--", linewidth=1)
axes[0].set_ylim(-0.02, 1.05)
axes[0].set_ylabel("dark share of the component")
axes[1].set_yscale("log")
report.few_log_ticks(axes[1].yaxis)
seventh, _ = shares(7, "variance")
report.label_end(axes[1], last, seventh["value"].iloc[-1], "PC 4 to 10", report.GREY)
axes[1].set_ylabel("share of the variance")
for axis in axes:
    report.spread_labels(axis, gap=0.08)
report.layer_axis(axes[1], last)
first, _ = shares(1, "dark")
loud, _ = shares(1, "variance")
report.publish_figure(
    figure,
    table,
    name="pc1_migration",
    model=name,
    caption=(
        f"Leading principal components (PC) of {name} by layer, k = {study.pga.readout_dim}. "
        "Above: their dark share; dashed, that of a random direction, "
        f"{study.random:.2f}. Below: their share of the variance. Diamonds: after the final norm"
        + ("; shaded: the collapse zone of z." if zone else ".")
    ),
    alt=(
        f"Two panels against layer for {name}. The dark share of the first component runs from "
        f"{first['value'].min():.2f} to {first['value'].max():.2f} over the layers, its share of "
        f"the variance from {loud['value'].min():.2f} to {loud['value'].max():.2f}."
    ),
    provenance=report.provenance(study.artefact.inputs, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
late = zone or (2 * last // 3 + 1, last - 1)
rise = study.rise(late)
where = f"layers {late[0]} to {late[1]}" if late[0] < late[1] else f"layer {late[0]}"
inside = first[first["depth"].between(*late)]["value"]
report.show_table(
    report.comparison(
        {
            "R6": (f"collapse zone, {where}" if zone else f"no collapse zone; {where} instead")
            + f": dark share of the first component {inside.min():.2f} to {inside.max():.2f}, "
            f"{study.random:.2f} for a random direction; less that of the first third: "
            + report.with_interval(rise.value, rise.ci_low, rise.ci_high)
        }
    )
)
