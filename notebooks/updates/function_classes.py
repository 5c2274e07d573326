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
#     studies: [updates]
#     claims: [U8]
# ---

# %% [markdown]
# # Does it matter which kind of map is fitted?
#
# The tokenwise part is whatever a chosen family of maps can explain, so the residual is partly a
# statement about that family. Five of them are fitted to every block: scaling each coordinate,
# rotating, a map of low rank, the identity plus one of low rank, and a small network shared by all
# tokens. Beside them stand three baselines that any family should beat: doing nothing, adding the
# neighbours' mean update, and one linear map for all tokens.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where the table goes

# %%
from layergeom import report, studies

session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.UpdatesStudy(session)
table = studies.function_classes(study)
name, depth = session.files.name, session.states.depth
report.show_notices(session.states.facts)
report.show_undertrained(study.fits.undertrained())

# %% [markdown]
# The first rows sum up each column over the blocks; below them, the relative error $|r|/|h'|$ of
# every block, the lowest among the classes in bold. Baselines stand to the right and do not
# compete: where one of them has the lowest figure of the row, the block hardly changes its tokens
# or changes them all alike. A star marks an undertrained map.

# %%
shown = report.rounded_classes(table, [*studies.CLASSES, *studies.BASELINES])
report.publish_table(
    table,
    shown,
    name="function_classes",
    model=name,
    caption=(
        f"Relative error (state reading) by block of {name} and class of tokenwise map, medians "
        "over tokens; above, medians over blocks of error, cosine of full and tokenwise, and angle "
        "of T(h) and r."
    ),
    provenance=report.provenance(study.fits.fit_inputs(0), **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
competing = table[~table["baseline"] & ~table["undertrained"]]
medians = competing.groupby("class")["rel_err_state"].median()
wins = table[table["best"]]["class"].value_counts()
report.show_table(
    report.comparison(
        {
            "U8": f"median relative error over blocks from {medians.min():.2f} "
            f"({medians.idxmin()}) to {medians.max():.2f} ({medians.idxmax()}); lowest in "
            + ", ".join(f"{count} of {depth} blocks: {best}" for best, count in wins.items())
        }
    )
)
