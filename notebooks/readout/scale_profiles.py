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
#     order: 2
#     studies: [pga]
#     claims: [R1, R2]
# ---

# %% [markdown]
# # At which depth do narrow models leave the path of wide ones?
#
# Models differ in their number of layers, so that layer 6 of one is no counterpart of layer 6 of
# another. Laid on one axis from the first layer to the last, their profiles of $z$ can be compared:
# the paper sees wide ones rise in the middle and narrow ones fall before the end.

# %% tags=["parameters"]
models: list = ["smollm2-135m", "mini-pythia-d64"]  # catalogue names, hub ids or local folders
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt

from layergeom import report, studies

report.use_style()
sessions = [studies.open_session(model, corpus, sizes, seed, dtype) for model in models]
table = studies.scale_profiles(sessions)
colours = report.width_colours(table["width"])

# %% [markdown]
# The darker the curve, the wider the model; squares are state-space models. Diamonds, set off to
# the right, stand behind the final norm. Between the dotted lines the readout is no different from
# a random subspace.

# %%
MARKERS = {"transformer": "o", "state space": "s"}
figure, axis = plt.subplots(figsize=(6, 4.8))
for bound in (-2, 2):
    axis.axhline(bound, color=report.GREY, linestyle=":", linewidth=1)
axis.axhline(0, color=report.GREY, linewidth=0.8)
for (model, width, kind), rows in table.groupby(["model", "width", "kind"], sort=False):
    hidden, out = rows[rows["point"] != "out"], rows[rows["point"] == "out"].iloc[0]
    z = hidden.rename(columns={"z": "value"})
    report.curve(axis, hidden["relative_depth"], z, colours[width], "", marker=MARKERS[kind])
    report.point(axis, 1.06, out, colours[width], f"{model}\nd = {width}")
axis.set_ylabel("z (standard deviations)")
axis.set_xticks([0, 0.25, 0.5, 0.75, 1, 1.06], ["0", "¼", "½", "¾", "1", " out"])
axis.set_xlabel("relative depth (1: last layer; out: after the final norm)")
report.spread_labels(axis, gap=0.1)
spans = table[table["point"] != "out"].groupby("model", sort=False)["z"].agg(["min", "max"])
report.publish_figure(
    figure,
    table,
    name="scale_profiles",
    model=report.ACROSS,
    caption=(
        "z at CCR-1 against relative depth, with 95 % intervals, coloured from light (narrow) to "
        "dark (wide). Circles: transformers; squares: state-space models; diamonds: after the "
        "final norm."
    ),
    alt="z against relative depth. "
    + " ".join(
        f"{model} runs from {row['min']:.1f} to {row['max']:.1f}."
        for model, row in spans.iterrows()
    ),
    provenance=report.provenance(
        {"models": list(models), "corpus": corpus, "sizes": sizes, "seed": seed}
    ),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
inner = table[(table["depth"] > 0) & (table["depth"] < table["layers"])]
peaks = inner.loc[inner.groupby("model", sort=False)["z"].idxmax()]
lows = inner.loc[inner.groupby("model", sort=False)["z"].idxmin()]


def listed(rows):
    return "; ".join(
        f"{row['model']} (d = {row['width']}) {row['z']:.1f} at {row['relative_depth']:.2f}"
        for row in rows.to_dict("records")
    )


report.show_table(
    report.comparison(
        {
            "R1": f"highest z and its depth: {listed(peaks)}",
            "R2": f"lowest z and its depth: {listed(lows)}",
        }
    )
)
