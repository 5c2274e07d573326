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
#     order: 1
#     studies: [updates]
#     claims: [U4, U5, U6]
# ---

# %% [markdown]
# # In which models does the error foretell the effect?
#
# The paper's strongest figure is a correlation: tokens whose residual is longer see their
# prediction change more, with Spearman coefficients often above 0.7, higher in larger models, and
# in state-space models as well. Here are all models of this book and all classes of map in one
# table.

# %% tags=["parameters"]
models: list = ["smollm2-135m"]  # catalogue names, hub ids or local folders
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where the table goes

# %%
from layergeom import report, studies

sessions = [studies.open_session(model, corpus, sizes, seed, dtype) for model in models]
table = studies.updates_overall(sessions)
rho = table[table["quantity"].str.endswith("spearman_relerr_kl")]

# %% [markdown]
# Each cell has the median over blocks of the correlation over tokens, and in brackets its 95 %
# interval from one bootstrap over sequences that all blocks share; the last column has the highest
# block of the class `orthogonal`. All positions are replaced at once. A correlation over tokens
# does not say that the residual's direction matters: see the controls on each model's own page.

# %%
report.publish_table(
    rho,
    report.rounded_correlations(rho, list(studies.CLASSES), studies.CONTROLLED),
    name="correlation_table",
    model=report.ACROSS,
    caption=(
        "Spearman's correlation of relative error and KL over tokens: median over blocks with its "
        "95 % interval, by model and class of map, and the highest block of the class orthogonal."
    ),
    provenance=report.provenance(
        {"models": list(models), "corpus": corpus, "sizes": sizes, "seed": seed}
    ),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
median = rho[
    (rho["class"] == studies.CONTROLLED) & (rho["quantity"] == "median_spearman_relerr_kl")
].sort_values("width")
stated = [
    f"{row.model} (d = {row.width}) {report.with_interval(row.value, row.ci_low, row.ci_high)}"
    for row in median.itertuples()
]
of_kind = {kind: rows["value"] for kind, rows in median.groupby("kind")}
report.show_table(
    report.comparison(
        {
            "U4": f"median over blocks above 0.7 in {(median['value'] > 0.7).sum()} of "
            f"{len(median)} models",
            "U5": "by width: " + "; ".join(stated),
            "U6": "; ".join(
                f"{kind}: {values.min():.2f} to {values.max():.2f}"
                for kind, values in of_kind.items()
            ),
        }
    )
)
