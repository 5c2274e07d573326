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
#     studies: [pga, components, spectral, lens, probes, updates, equal_errors, training,
#       convergence]
#     claims: [U1, U2, U3, U4, U5, U6, U7, U8, U9, U10, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10,
#       R11, R12, R13, R14]
# ---

# %% [markdown]
# # Which claims hold on these models?
#
# Two papers make twenty-four claims between them. Each was given a rule before it was measured: a
# quantity, a bound, and how sure one must be. This page applies the rules to what is stored for
# the models of this book. Nobody types a verdict; run it on other models, and they change.

# %% tags=["parameters"]
models: list = ["smollm2-135m"]  # catalogue names, hub ids or local folders
notebooks: list = []  # notebooks whose pages this book has, for the links; none if left out
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where the table goes

# %%
from IPython.display import Markdown, display

from layergeom import claims, report, studies

sessions = [studies.open_session(model, corpus, sizes, seed, dtype) for model in models]
results = claims.gather_all(sessions)
entries = claims.ledger(results)
links = claims.Links(frozenset(notebooks), frozenset(model.name for model in results.models))
display(Markdown(f"**{claims.summary(entries)}**"))
if outsiders := claims.outsiders(results.models):
    report.show_notice(outsiders)

# %% [markdown]
# A claim is *reproduced* where its rule holds and *not reproduced* where the intervals rule it out.
# It is *mixed* where they leave both possible, or where models that it speaks of differ. It is *not
# testable* where no model is of the kind that it speaks of: what is said of widths from 2,048 on
# cannot be tried on narrow models. Each model has its own verdict, further down.

# %%
report.publish_table(
    claims.in_full(entries),
    claims.overview(entries, links),
    name="claims",
    model=report.ACROSS,
    caption="Every claim of both papers, with the verdict on all models of this book together.",
    provenance=report.provenance(
        {"models": list(models), "corpus": corpus, "sizes": sizes, "seed": seed}
    ),
    folder=folder,
)

# %% [markdown]
# ## What is measured, model by model
#
# In brackets: 95 % intervals. A model's name leads to the page of its figure. Where a claim is
# about a pair of models, a family or a class of widths, that stands in the place of the model.

# %%
report.show_table(claims.by_model(entries, links))

# %% [markdown]
# ## The rules
#
# *By interval* means that the whole interval must lie on the bound's side. Where a rule names the
# figure alone, the figure decides whether it holds, and only an interval wholly on the other side
# rules it out. A rule about every block is ruled out by one block, a rule about half of the blocks
# by more than half of them.

# %%
report.show_table(claims.rules(entries))
