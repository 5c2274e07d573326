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
#     order: 10
#     studies: [training]
#     claims: [R4, R8]
# ---

# %% [markdown]
# # When in training is the organisation gained, and is it lost again?
#
# A finished model shows where it ended up, not how it got there. Its checkpoints do: here every
# layer is measured from the first steps on, with the same tokens and the same random subspaces
# throughout, and the loss on articles that it has never seen stands above. A loss that falls
# while $z$ falls as well would mean that predicting better and being arranged for the prediction
# are two different things.

# %% tags=["parameters"]
model: str = "mini-pythia-d64"  # catalogue name of a model with checkpoints
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
study = studies.TrainingStudy(session)
table, losses, facts = study.table(), study.losses(), study.facts
cells = table.assign(uncertain=(table["ci_low"] <= 0) & (table["ci_high"] >= 0))
z, uncertain = (
    cells.pivot_table(index="point", columns="step", values=column, sort=False)
    for column in ("z", "uncertain")
)
name = session.files.name
report.show_notices(session.states.facts)

# %% [markdown]
# Below, each column is a checkpoint and each row a layer: blue where the readout keeps distances
# better than random subspaces do, red where it keeps them worse, with a dot where the 95 %
# interval holds 0. Steps are spaced by their logarithm, since most happens early.

# %%
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(6, 5.6), height_ratios=[2, 3])
top.plot(
    report.step_place(losses["step"]), losses["validation_loss"], color=report.BLUE, marker="o"
)
for row in losses[losses["same_as"] >= 0].to_dict("records"):
    place = report.step_place(row["step"])
    top.plot([place], [row["validation_loss"]], "x", color=report.VERMILION, markersize=9)
    top.annotate(f"= step {row['same_as']}", (place, row["validation_loss"]), rotation=45)
top.set_ylabel("held-out loss\n(nats a token)")
mesh = report.z_heat_map(bottom, z)
report.mark_uncertain(bottom, uncertain.astype(bool))
bottom.set_ylabel("layer")
report.step_axis(bottom, losses["step"])
figure.colorbar(mesh, ax=[top, bottom], label="z (standard deviations)", shrink=0.6, pad=0.02)
report.publish_figure(
    figure,
    study.quantities().merge(losses[["step", "validation_loss", "same_as"]], on="step"),
    name="training_dynamics",
    model=name,
    caption=(
        f"{name}: held-out loss at all {facts['checkpoints_kept']} checkpoints, and z at CCR-1 by "
        f"layer at {facts['checkpoints']} of them. "
        f"Each checkpoint is measured on {facts['samples_at_each']} samples of {facts['tokens']} "
        "tokens, fewer than the finished model. Dots: the 95 % interval holds 0."
    ),
    alt=(
        f"Above, the held-out loss of {name} falls from {losses['validation_loss'].iloc[0]:.2f} "
        f"to {losses['validation_loss'].iloc[-1]:.2f} nats. Below, a heat map of z by layer and "
        f"training step, from {table['z'].min():.1f} to {table['z'].max():.1f}."
    ),
    provenance=report.provenance(study.inputs, **facts, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here
#
# The download holds the rest of what was measured at each checkpoint: the dark share of the first
# component, the spectral metrics and the logit lens.

# %%
steps = list(losses["step"])
late = study.late_layers()
report.show_table(
    report.comparison(
        {
            "R4": f"d = {session.states.width}: highest lower bound of z in a late layer "
            f"{late['ci_low'].max():.1f} (step {late.loc[late['ci_low'].idxmax(), 'step']}); mean "
            f"over late layers {late[late['step'] == steps[-1]]['z'].mean():.1f} at the last step",
            "R8": f"loss {losses['validation_loss'].iloc[-1]:.2f} at the last step; models "
            "are compared at matched steps in the ledger of claims",
        }
    )
)
repeated = losses[losses["same_as"] >= 0]
if len(repeated):
    pairs = ", ".join(f"{row.step} and {row.same_as}" for row in repeated.itertuples())
    report.show_notice(f"These steps have equal weights, and are one measurement: {pairs}.")
