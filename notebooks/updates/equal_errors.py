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
#     studies: [updates, equal_errors]
#     claims: [U4, U9]
# ---

# %% [markdown]
# # Does it matter where the residual points, or only how long it is?
#
# Longer errors do more harm whatever they are, so a correlation of the residual's length with the
# change of the output shows little. The comparison that counts is between errors of the *same*
# length: the residual itself, a random direction, another token's residual, and an error along the
# token's own tokenwise update. If the residual carries the block's real work, leaving it out must
# cost more than any of them.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
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
session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.UpdatesStudy(session)
summary = study.summary()
own = summary[(summary["class"] == studies.CONTROLLED) & (summary["quantity"] == "kl")]
controls = study.equal_errors()
name, depth = session.files.name, session.states.depth
report.show_notices(session.states.facts)

# %% [markdown]
# Above, the median divergence that each error causes, all with the residual's length token by
# token. Below, the residual's divergence less that of each control, the median over tokens of the
# paired differences: above zero, the residual hurts more than an equally long error of that kind.
# The lower axis is linear around zero and logarithmic beyond.

# %%
CONTROLS = {
    "random": ("random direction", report.GREY),
    "other_token": ("another token's", report.ORANGE),
    "along_tokenwise": ("along T(h) - h", report.BLUE),
}
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(6.0, 5.8))
report.curve(top, own["block"], own, report.VERMILION, "residual")
differences = {}
for control, (label, colour) in CONTROLS.items():
    rows = controls[controls["quantity"] == f"kl_{control}"]
    differences[control] = controls[controls["quantity"] == f"kl_minus_{control}"]
    report.curve(top, rows["block"], rows, colour, label)
    report.curve(bottom, rows["block"], differences[control], colour, label)
top.set_yscale("log")
report.few_log_ticks(top.yaxis)
top.set_ylabel("KL (nats, median)")
report.symmetric_log(bottom, own["value"].median() / 10)
bottom.axhline(0, color=report.GREY, linewidth=0.8)
bottom.set_ylabel("residual's KL less control's")
report.block_axis(bottom, depth)
report.spread_labels(top, gap=0.08)
report.spread_labels(bottom, gap=0.08)
above = {control: int((rows["ci_low"] > 0).sum()) for control, rows in differences.items()}
below = {control: int((rows["ci_high"] < 0).sum()) for control, rows in differences.items()}
report.publish_figure(
    figure,
    pd.concat([own, controls]),
    name="equal_errors",
    model=name,
    caption=(
        f"KL of errors as long as the residual, by block of {name}: the residual (map class "
        "orthogonal) and three controls, and the paired differences. Bands: 95 % bootstrap "
        "intervals over sequences."
    ),
    alt=(
        f"Two panels against block for {name}: the KL of four errors of equal length, and the "
        "residual's less each control's. The residual does more than "
        + ", ".join(f"{CONTROLS[c][0]} in {n} of {depth} blocks" for c, n in above.items())
        + "."
    ),
    provenance=report.provenance(study.controls.inputs(0), **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
report.show_table(
    report.comparison(
        {
            "U4": "the residual does more by interval than "
            + "; ".join(
                f"{CONTROLS[c][0]} in {above[c]} of {depth} blocks, less in {below[c]}"
                for c in ("random", "other_token")
            ),
            "U9": f"the residual does more by interval than an error along T(h) - h in "
            f"{above['along_tokenwise']} of {depth} blocks, less in {below['along_tokenwise']}",
        }
    )
)
