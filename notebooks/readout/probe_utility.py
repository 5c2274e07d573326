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
#     order: 9
#     studies: [pga, probes]
#     claims: [R10, R11]
# ---

# %% [markdown]
# # Does a layer that follows the readout also tell texts apart?
#
# A probe asks what can be *read off* a layer with a straight cut: one vector for each text, a
# linear classifier, and its accuracy on texts it has not seen. $z$ asks how the layer *arranges*
# its tokens. If arrangement were all, the layers that have it would probe best; if a layer can
# lose it and still probe well, what a text is about has only moved out of the readout's sight.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
texts: str = "articles"  # which article a passage is from; or the path of a CSV of labelled texts
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt
import pandas as pd

from layergeom import report, studies

report.use_style()
session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.ProbeStudy(session, texts)
table = study.table().rename(columns={"accuracy": "value"})
rho = study.correlations().set_index("pooling")
profile = studies.PGAStudy(session).profile()
z = profile.by_layer(level=1)
layers, out = z[z["point"] != "out"].rename(columns={"z": "value"}), z[z["point"] == "out"]
zone, facts, chance = profile.regime().collapse_zone, study.facts, table["chance"].iloc[0]
name, last = session.files.name, profile.depth
report.show_notices(session.states.facts)

# %% [markdown]
# Above: accuracy of a multinomial logistic regression on standardised vectors, five folds; a text
# is the mean over its tokens, or its last token, which has to have gathered the text by itself.
# The dotted line is the accuracy of always naming the largest class. Below: $z$ at CCR-1.

# %%
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(6, 6), height_ratios=[3, 2])
for pooling, colour in (("mean", report.BLUE), ("last", report.GREEN)):
    rows = table[table["pooling"] == pooling]
    hidden, end = rows[rows["point"] != "out"], rows[rows["point"] == "out"].iloc[0]
    report.curve(top, hidden["depth"], hidden, colour, "")
    report.point(top, last + 1, end.rename({"value": "z"}), colour, pooling)
top.axhline(chance, color=report.GREY, linestyle=":")
report.label_end(top, last + 1, chance, "chance", report.GREY)
top.set_ylim(0, 1.03)
top.set_ylabel(f"accuracy ({facts['classes']} classes)")
report.spread_labels(top, gap=0.07)
for axis in (top, bottom) if zone else ():
    axis.axvspan(zone[0] - 0.5, zone[1] + 0.5, color=report.VERMILION, alpha=0.08, linewidth=0)
bottom.axhline(0, color=report.GREY, linewidth=0.8)
report.curve(bottom, layers["depth"], layers, report.VERMILION, "")
report.point(bottom, last + 1, out.iloc[0], report.VERMILION, "z")
bottom.set_ylabel("z (standard deviations)")
report.layer_axis(bottom, last)
mean = table[(table["pooling"] == "mean") & (table["point"] != "out")].set_index("depth")["value"]
shaded = " The collapse zone is shaded." if zone else ""
report.publish_figure(
    figure,
    pd.concat(
        [
            table,
            layers.assign(pooling="z")[["point", "depth", "pooling", "value", "ci_low", "ci_high"]],
        ]
    ),
    name="probe_utility",
    model=name,
    caption=(
        f"Probes of {name} on {facts['texts']} texts of {facts['classes']} classes "
        f"({study.labelled.name}), median length {facts['tokens']} tokens, with 95 % intervals "
        f"over {facts['folds']} folds, and z at CCR-1.{shaded}"
    ),
    alt=(
        f"Two panels against layer for {name}: accuracy of the probe on mean states runs from "
        f"{mean.min():.2f} to {mean.max():.2f} against a chance of {chance:.2f}; below, z runs "
        f"from {layers['value'].min():.1f} to {layers['value'].max():.1f}."
    ),
    provenance=report.provenance(study.inputs, **facts, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here
#
# Intervals over folds are somewhat too short, because folds share their training texts; compare
# layers by their curves, which all have the same folds.

# %%
found, width = rho.loc["mean"], session.states.width
inside = "no collapse zone"
if zone:
    worst = mean.loc[zone[0] : zone[1]].min()
    inside = (
        f"lowest accuracy in the zone {worst:.2f} (mean over tokens), the peak {mean.max():.2f}"
    )
report.show_table(
    report.comparison(
        {
            "R10": f"d = {width}: Spearman of z and accuracy over layers "
            f"{report.with_interval(found['value'], found['ci_low'], found['ci_high'])}",
            "R11": f"d = {width}: {inside}",
        }
    )
)
