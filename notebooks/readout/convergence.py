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
#     studies: [pga, convergence]
#     claims: [R9]
# ---

# %% [markdown]
# # Do two models arrange the same text alike, and most of all where they read it out?
#
# Two models trained apart share no coordinates, but they can be asked the same question: which
# points of this text are close to each other? If prediction shapes the geometry, their answers
# should agree more in the directions that each one reads its prediction from than in full space or
# in random directions.

# %% tags=["parameters"]
models: list = ["smollm2-135m", "mini-pythia-d64"]  # each is compared with the next in the list
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt
import pandas as pd

from layergeom import report, studies

report.use_style()
sessions = [studies.open_session(model, corpus, sizes, seed, dtype) for model in models]
pairs = studies.compare_pairs(sessions)
table = pairs.along_depth()
for names, reason in pairs.left_out.items():
    report.show_notice(f"{names[0]} and {names[1]} are not compared: {reason}")

# %% [markdown]
# Tokens of two tokenizers are matched where both end at the same character, so that both models
# have read exactly the same text. Each curve is the rank correlation between the two models'
# distances at layers of the same relative depth, after CCR-1 in each. The maps beside them show
# every layer of one model against every layer of the other, in the readout spaces and in random
# ones: a bright diagonal would mean that the two pass through like stages in like order.

# %%
SPACES = {"full": report.GREY, "readout": report.BLUE, "random": report.ORANGE}
count, matrices = len(pairs.studies), pairs.matrices()
drawn = table[table["quantity"].isin(list(SPACES))]
limits = min(-0.02, drawn["ci_low"].min()), 1.05 * drawn["ci_high"].max()
shown = matrices.loc[matrices["space"] != "full", "value"]
ends = min(0.0, shown.min()), shown.max()
figure, axes = plt.subplots(
    count, 3, squeeze=False, figsize=(7.5, 1 + 2.4 * count), width_ratios=[3, 2, 2]
)
for (axis, *maps), study in zip(axes, pairs.studies, strict=True):
    rows = study.along_depth()
    for space, colour in SPACES.items():
        curve = rows[rows["quantity"] == space]
        report.curve(axis, curve["relative_depth"], curve, colour, space)
    axis.axhline(0, color=report.GREY, linewidth=0.8)
    axis.set_title("{} and\n{}".format(*study.names))
    axis.set(ylim=limits, ylabel=r"agreement $\rho$")
    axis.locator_params(axis="y", nbins=4)
    report.spread_labels(axis, gap=0.1)
    for beside, space in zip(maps, ("readout", "random"), strict=True):
        mesh = report.agreement_map(beside, study.matrix(), space, study.names, ends)
        beside.set_title(space)
axes[-1, 0].set_xlabel("relative depth of both layers")
figure.colorbar(mesh, ax=axes[:, 1:], label=r"agreement $\rho$", location="bottom", aspect=40)
samples, tokens = pairs.studies[0].samples, sessions[0].settings.sizes.pga_tokens
means = table.groupby(["first_model", "second_model", "quantity"], sort=False)["value"].mean()
report.publish_figure(
    figure,
    pd.concat([table, matrices.assign(quantity="matrix")], ignore_index=True),
    name="convergence",
    model=report.ACROSS,
    caption=(
        "Agreement between models on which points of a text are close: Spearman between their "
        "cosine distances in full space, in each one's readout space, and in pairs of random "
        f"subspaces (mean), with 95 % intervals over {samples} samples of {tokens} matched tokens, "
        "each from passages of its own. Maps: all layers of both in readout space, and in random "
        "subspaces (mean)."
    ),
    alt="Agreement of models against relative depth, and as maps of all their layers. "
    + " ".join(
        f"{s.names[0]} and {s.names[1]}: on average {means[(*s.names, 'readout')]:.2f} in readout "
        f"space, {means[(*s.names, 'full')]:.2f} in full, {means[(*s.names, 'random')]:.2f} in "
        "random space."
        for s in pairs.studies
    ),
    provenance=report.provenance(
        {"models": list(models), "corpus": corpus, "sizes": sizes, "seed": seed},
        matched_samples=samples,
        common_ends=pairs.common_ends(),
    ),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
differences = table[table["quantity"].str.startswith("readout_minus")]
above = differences.assign(above=differences["ci_low"] > 0, places=1).groupby(
    ["first_model", "second_model", "quantity"], sort=False
)[["above", "places"]]
counts = above.sum()
report.show_table(
    report.comparison(
        {
            "R9": "depths at which the readout's agreement is higher by interval: "
            + "; ".join(
                f"{first} and {second}, than {quantity.removeprefix('readout_minus_')}: "
                f"{row['above']} of {row['places']}"
                for (first, second, quantity), row in counts.iterrows()
            )
        }
    )
)
