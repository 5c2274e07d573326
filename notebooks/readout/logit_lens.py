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
#     order: 8
#     studies: [pga, lens]
#     claims: [R14]
# ---

# %% [markdown]
# # Is a layer that can already be decoded also arranged for the readout?
#
# The logit lens asks of each token on its own: if the model ended at this layer, what would it
# predict, and how far is that from what it predicts in the end? $z$ asks another thing, how
# tokens lie *relative to each other*. A layer could get every single token nearly right and still
# hold distances that have nothing to do with the prediction, or the other way round.

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
study = studies.LensStudy(session)
table = study.table()
rho = study.correlations().set_index("quantity")
profile = studies.PGAStudy(session).profile()
z = profile.by_layer(level=1)
layers, out = z[z["point"] != "out"].rename(columns={"z": "value"}), z[z["point"] == "out"]
name, last = session.files.name, profile.depth
report.show_notices(session.states.facts)

# %% [markdown]
# At each layer the model's own final norm and head are applied anew. Above: the divergence of the
# final prediction from the lens's, in nats, median over tokens. Middle: how often both put the
# same token first. At the last layer the lens *is* the prediction. Below: $z$ at CCR-1. Each
# $\rho$ is the rank correlation with $z$ over the layers, with an interval that counts the error
# of both measurements and that of having these few layers.

# %%
figure, axes = plt.subplots(3, 1, sharex=True, figsize=(6, 7))
for axis, quantity, colour, title in (
    (axes[0], "kl", report.BLUE, "KL(final ‖ lens)"),
    (axes[1], "agreement", report.GREEN, "same first token"),
):
    rows, found = table[table["quantity"] == quantity], rho.loc[quantity]
    report.curve(axis, rows["depth"], rows, colour, "")
    against = report.with_interval(found["value"], found["ci_low"], found["ci_high"])
    axis.set_title(rf"{title}: $\rho$ with z = {against}")
    axis.set_ylim(bottom=0)
axes[0].set_ylabel("nats")
axes[1].set_ylim(top=1.05)
axes[1].set_ylabel("share of tokens")
axes[2].axhline(0, color=report.GREY, linewidth=0.8)
report.curve(axes[2], layers["depth"], layers, report.VERMILION, "")
report.point(axes[2], last + 1, out.iloc[0], report.VERMILION, "z")
axes[2].set_title("z at CCR-1")
axes[2].set_ylabel("standard deviations")
report.layer_axis(axes[2], last)
kl, agreement = (table[table["quantity"] == q].set_index("depth") for q in ("kl", "agreement"))
half = agreement.index[agreement["value"] >= 0.5].min()
report.publish_figure(
    figure,
    pd.concat([table, layers.assign(quantity="z")[table.columns]], ignore_index=True),
    name="logit_lens",
    model=name,
    caption=(
        f"Logit lens of {name} by layer, with 95 % bootstrap intervals over {study.sequences} "
        "sequences, and z at CCR-1. Titles: Spearman correlation with z over layers 0 to "
        f"{last}, with its 95 % interval."
    ),
    alt=(
        f"Three panels against layer for {name}: the lens's divergence falls from "
        f"{kl['value'].max():.1f} nats to 0, its agreement with the final prediction rises to 1 "
        f"and passes one half at layer {half}, and z runs from {layers['value'].min():.1f} to "
        f"{layers['value'].max():.1f}."
    ),
    provenance=report.provenance(study.artefact.inputs, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
found = rho.loc["agreement"]
held = "holds" if found["ci_low"] <= 0 <= found["ci_high"] else "does not hold"
report.show_table(
    report.comparison(
        {
            "R14": "Spearman of agreement and z over the layers "
            f"{report.with_interval(found['value'], found['ci_low'], found['ci_high'])}, which "
            f"{held} 0; half of the tokens agree from layer {half} on"
        }
    )
)
