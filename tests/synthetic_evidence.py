"""Made-up results of studies, in the studies' own tables, from which a verdict is known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from layergeom.claims import Agreement, Evidence, Results
from layergeom.studies import CLASSES

#: Blocks of a made-up model: its intermediate layers are 1 to 8, of which 4 to 6 are the middle
#: third, and 7 and 8 are late.
DEPTH = 9
SAMPLES = 8


def evidence(
    name: str = "model", *tables: Mapping[str, pd.DataFrame], width: int = 64, **more: object
) -> Evidence:
    """A model with these tables; further facts by name."""
    merged = {key: table for part in tables for key, table in part.items()}
    facts = {"family": "family", "state_space": False, "depth": DEPTH, "random_dark": 0.75, **more}
    return Evidence(name=name, width=width, tables=merged, **facts)


def one(*tables: Mapping[str, pd.DataFrame], width: int = 64, **more: object) -> Results:
    """Results of a single model."""
    return Results([evidence("model", *tables, width=width, **more)])


def together(*results: Results) -> Results:
    """Models of several results, under names of their own, and all their pairs."""
    models = [
        replace(model, name=f"{model.name} {number}")
        for number, part in enumerate(results)
        for model in part.models
    ]
    pairs = [
        replace(pair, first=f"{pair.first} {number}", second=f"{pair.second} {number}")
        for number, part in enumerate(results)
        for pair in part.pairs
    ]
    return Results(models, pairs)


def _interval(value: float, half: float) -> dict[str, float]:
    return {"value": value, "ci_low": value - half, "ci_high": value + half}


def updates(
    quantities: Mapping[str, float | Sequence[float]],
    half: float = 0.01,
    classes: Sequence[str] = ("orthogonal",),
    depth: int = DEPTH,
) -> dict[str, pd.DataFrame]:
    """The summary by block; one value stands for all blocks."""
    rows = [
        {"block": block, "class": name, "quantity": quantity, **_interval(value, half)}
        for name in classes
        for quantity, given in quantities.items()
        for block, value in enumerate(np.broadcast_to(given, depth))
    ]
    return {"updates": pd.DataFrame(rows)}


def overall(
    quantities: Mapping[str, float], half: float = 0.01, classes: Sequence[str] = CLASSES
) -> dict[str, pd.DataFrame]:
    """What the blocks amount to."""
    rows = [
        {"class": name, "quantity": quantity, **_interval(value, half)}
        for name in classes
        for quantity, value in quantities.items()
    ]
    return {"overall": pd.DataFrame(rows)}


def layered(values: float | Mapping[int, float], rest: float = 0.0) -> list[float]:
    """A value for each of ``H_0 ... H_L``: one for all, or given layers and the rest."""
    given = values if isinstance(values, Mapping) else {}
    other = rest if isinstance(values, Mapping) else values
    return [given.get(layer, other) for layer in range(DEPTH + 1)]


def profile(values: Sequence[float], column: str, half: float) -> pd.DataFrame:
    """One row per layer."""
    rows = [
        {"point": f"H_{layer}", "depth": layer, **_interval(value, half)}
        for layer, value in enumerate(values)
    ]
    return pd.DataFrame(rows).rename(columns={"value": column})


def pga(
    values: float | Mapping[int, float],
    rest: float = 0.0,
    out: float = 0.0,
    level: int = 1,
    half: float = 0.5,
) -> dict[str, pd.DataFrame]:
    """z by layer at one level of removal."""
    hidden = profile(layered(values, rest), "z", half)
    after = pd.DataFrame([{"point": "out", "depth": DEPTH, **_interval(out, half)}])
    table = pd.concat([hidden, after.rename(columns={"value": "z"})], ignore_index=True)
    return {"pga": table.assign(level=level)}


def stacked(*parts: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Tables of one name under each other."""
    (name,) = parts[0]
    return {name: pd.concat([part[name] for part in parts], ignore_index=True)}


#: A collapse zone in the late layers, 7 and 8, with an organised final layer.
ZONE = pga({7: -5.0, 8: -5.0, 9: 5.0}, rest=5.0, out=5.0)


def by_sample(
    columns: Mapping[str, Mapping[int, float]], rest: float, noise: float, **constants: object
) -> pd.DataFrame:
    """One row per layer and sample; samples differ by the noise, alternating about the value."""
    rows = []
    for layer in range(DEPTH + 1):
        for sample in range(SAMPLES):
            # At the zone alone: a shift of all layers would cancel in differences.
            shift = noise * (-1) ** sample * (layer > 6)
            values = {key: given.get(layer, rest) + shift for key, given in columns.items()}
            rows.append({"point": f"H_{layer}", "depth": layer, "sample": sample} | values)
    return pd.DataFrame(rows).assign(**constants)


def dark_shares(zone: float, rest: float, noise: float = 0.001) -> dict[str, pd.DataFrame]:
    """Dark share of the first component."""
    table = by_sample({"dark_share": {7: zone, 8: zone}}, rest, noise, component=1)
    return {"components": table}


def null_excess(zone: float, noise: float = 0.001) -> dict[str, pd.DataFrame]:
    """The null's mean less the readout's rho, in the zone."""
    table = by_sample({"null_mean": {7: 0.5 + zone, 8: 0.5 + zone}}, 0.5, noise, level=1)
    return {"pga_samples": table.assign(rho_readout=0.5)}


def spectral(
    values: float | Mapping[int, float], rest: float = 0.0, half: float = 0.01
) -> dict[str, pd.DataFrame]:
    """Two spectral metrics by layer, one of which never moves."""
    moving = profile(layered(values, rest), "value", half).assign(metric="rankme")
    level = rest if isinstance(values, Mapping) else values
    still = profile(layered(level), "value", half).assign(metric="isoscore")
    return {"spectral": pd.concat([moving, still], ignore_index=True)}


def training(
    late: Sequence[float], losses: Sequence[float], half: float = 0.5, rest: float = 5.0
) -> dict[str, pd.DataFrame]:
    """z by step, the late layers as given and the others at the rest; steps 0, 1, 2 ..."""
    tables = [
        profile(layered({7: z, 8: z}, rest), "z", half).iloc[1:].assign(step=step)
        for step, z in enumerate(late)
    ]
    steps = pd.DataFrame({"step": range(len(losses)), "validation_loss": losses})
    return {"training": pd.concat(tables, ignore_index=True), "losses": steps}


def probes(zone: float, best: float, half: float = 0.005) -> dict[str, pd.DataFrame]:
    """Accuracy by layer; the zone's, and everywhere else the best."""
    values = layered({7: zone, 8: zone}, rest=best)
    table = profile(values, "accuracy", half).assign(pooling="mean", chance=0.1)
    last = profile(layered(0.1), "accuracy", half).assign(pooling="last", chance=0.1)
    return {"probe": pd.concat([table, last], ignore_index=True)}


def correlation(table: str, quantity: str, value: float, half: float) -> dict[str, pd.DataFrame]:
    """A correlation with z over the layers."""
    return {table: pd.DataFrame([{"quantity": quantity, **_interval(value, half)}])}


def agreement(full: float, random: float, half: float = 0.01) -> Results:
    """Two models that agree more in readout space by this much."""
    quantities = {"readout_minus_full": full, "readout_minus_random": random}
    rows = [
        {"relative_depth": share, "quantity": quantity, **_interval(value, half)}
        for quantity, value in quantities.items()
        for share in (0.0, 0.5, 1.0)
    ]
    pair = Agreement("one", "other", pd.DataFrame(rows))
    return Results([evidence("one"), evidence("other")], [pair])
