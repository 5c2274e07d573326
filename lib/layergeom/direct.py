"""The measures as numbers: what ``layergeom pga`` and ``layergeom updates`` print and save."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from layergeom.errors import UsageError
from layergeom.files import check_writable, whole_file
from layergeom.geometry.memory import GIB, token_groups
from layergeom.geometry.neighbours import Metric
from layergeom.report.provenance import provenance
from layergeom.studies.fits import FitsStudy
from layergeom.studies.pga import PGAProfile, PGAStudy
from layergeom.studies.settings import SIZES, Settings
from layergeom.studies.states import Session
from layergeom.studies.updates import UpdatesStudy

_DEFAULT = SIZES["default"]


def _positions(model: str, corpus: str) -> int:
    """Positions of a sequence that are measured: fewer where the model's context is short."""
    session = Session(Settings(model, corpus))
    _ = session.corpus_as_given  # first: a bad text is said before a model is fetched
    return max(1, session.sequence_length - _DEFAULT.skip_positions)


def pga_settings(
    model: str,
    corpus: str,
    tokens: int,
    samples: int,
    readout_dim: int | None,
    seed: int,
    memory: float,
) -> Settings:
    """Settings for exactly ``tokens`` tokens a sample, from as many sequences as help."""
    needed = -(-tokens * samples // _positions(model, corpus))
    usual = _DEFAULT.bank_sequences + _DEFAULT.query_sequences
    sizes = _DEFAULT.model_copy(
        update={
            "pga_tokens": tokens,
            "pga_samples": samples,
            "bank_sequences": max(usual, needed),
            "query_sequences": 0,
        }
    )
    return Settings(model, corpus, sizes, seed, readout_dim, memory=round(memory * GIB))


def updates_settings(
    model: str,
    corpus: str,
    tokens: int,
    neighbours: int,
    bank_sequences: int,
    seed: int,
    metric: Metric,
    exclude_same_token: bool,
) -> Settings:
    """Settings for exactly ``tokens`` query tokens, all of them replaced."""
    sequences = max(4, -(-tokens // _positions(model, corpus)))
    sizes = _DEFAULT.model_copy(
        update={
            "bank_sequences": bank_sequences,
            "query_sequences": sequences,
            "query_tokens": tokens,
            "replaced_sequences": sequences,
            "neighbours": neighbours,
        }
    )
    return Settings(
        model, corpus, sizes, seed, metric=metric, exclude_same_token=exclude_same_token
    )


def pga_report(study: PGAStudy, ccr: int) -> dict[str, Any]:
    """Subspace PGA of a model as JSON values."""
    profile = study.profile()
    layers = []
    for row in profile.by_layer(ccr).to_dict("records"):
        samples = profile.samples[
            (profile.samples["point"] == row["point"]) & (profile.samples["level"] == ccr)
        ]
        layers.append(
            {
                "layer": _layer(str(row["point"])),
                **{
                    key: row[key]
                    for key in (
                        *("rho_readout", "null_mean", "null_std"),
                        *("z", "p", "ci_low", "ci_high"),
                    )
                },
                "samples": samples[
                    ["rho_readout", "null_mean", "null_std", "z", "p", "z_error", "pairs"]
                ].to_dict("records"),
            }
        )
    # Without one interval there is nothing to judge by.
    regime = profile.regime(ccr) if any(math.isfinite(row["z"]) for row in layers) else None
    sizes = study.settings.sizes
    return {
        "model": study.session.files.name,
        "measure": "subspace_pga",
        "ccr": ccr,
        "readout_dim": profile.readout_dim,
        "tokens": sizes.pga_tokens,
        "samples": sizes.pga_samples,
        "null_subspaces": sizes.null_subspaces,
        "interval": _interval(profile),
        "regime": regime and regime.regime,
        "collapse_zone": regime and regime.collapse_zone,
        "provenance": provenance(profile.inputs, **study.states.facts),
        "layers": layers,
    }


def _interval(profile: PGAProfile) -> str:
    """What the intervals of z hold, and whether all pairs were ranked."""
    several = profile.samples["sample"].nunique() > 1
    text = "95 %: samples and null" if several else "95 %: the null's own error (one sample)"
    if not profile.samples["z_error"].any():
        return text
    error = profile.samples["z_error"].max()
    return (
        f"{text}; {profile.samples['pairs'].iloc[0]:,} pairs within groups of tokens are ranked, "
        f"which may move z by {error:.2g} (standard error, at most)"
    )


def _layer(point: str) -> int | str:
    return int(point.removeprefix("H_")) if point.startswith("H_") else point


def pga_arrays(study: PGAStudy, ccr: int) -> dict[str, np.ndarray]:
    """The arrays behind the first sample's figures."""
    states = study.states
    sequences, positions = (index[0] for index in study.tokens)
    profile = study.profile()
    hidden = [states.at(f"H_{i}")[sequences, positions] for i in range(states.depth + 1)]
    first = profile.samples[(profile.samples["sample"] == 0) & (profile.samples["level"] == ccr)]
    level = profile.levels.index(ccr)
    return {
        "states": np.stack(hidden),
        "out": states.at("out")[sequences, positions],
        "unembedding": states.artefact.array("unembedding"),
        "token_ids": states.tokens[sequences, positions],
        "positions": positions,
        "sequences": sequences,
        "group": _groups(study, profile, len(positions)),
        "readout_basis": study.readout,
        "null_subspaces": study.subspaces,
        "rho_readout": first["rho_readout"].to_numpy(),
        "rho_null": np.stack([profile.rho_null[point][level, 0] for point in states.points]),
    }


def _groups(study: PGAStudy, profile: PGAProfile, tokens: int) -> np.ndarray:
    """Number of each token's group; pairs within a group are ranked. All 0 where all pairs are."""
    group = np.zeros(tokens, dtype=np.int64)
    count = int(profile.inputs["token_groups"])
    for number, members in enumerate(token_groups(tokens, count, study.settings.seed)):
        group[members] = number
    return group


#: JSON key of each summarised quantity, with what it is.
_UPDATES = {
    "rel_err_state": ("rel_err_state", "median of |r| / |h'|"),
    "rel_err_update": ("rel_err_update", "median of |r| / |h' - h|"),
    "cos_full_tokenwise": ("cos_full_tokenwise_state", "median cosine of h' and T(h)"),
    "cos_full_residual": ("cos_full_residual_state", "median cosine of h' and r"),
    "cos_tokenwise_residual": ("cos_tokenwise_residual_state", "median cosine of T(h) and r"),
    "angle_full_tokenwise": ("angle_full_tokenwise_state", "median angle, degrees"),
    "angle_full_residual": ("angle_full_residual_state", "median angle, degrees"),
    "angle_tokenwise_residual": (
        "angle_tokenwise_residual_state",
        "median angle of T(h) and r, degrees",
    ),
    "cos_full_tokenwise_update": (
        "cos_full_tokenwise_update",
        "median cosine of h' - h and T(h) - h",
    ),
    "cos_full_residual_update": ("cos_full_residual_update", "median cosine of h' - h and r"),
    "cos_tokenwise_residual_update": (
        "cos_tokenwise_residual_update",
        "median cosine of T(h) - h and r",
    ),
    "angle_full_tokenwise_update": ("angle_full_tokenwise_update", "median angle, degrees"),
    "angle_full_residual_update": ("angle_full_residual_update", "median angle, degrees"),
    "angle_tokenwise_residual_update": (
        "angle_tokenwise_residual_update",
        "median angle of T(h) - h and r, degrees",
    ),
    "energy_full": ("energy_full_state", "energy share in the dominant tokenwise subspace"),
    "energy_tokenwise": ("energy_tokenwise_state", "energy share, out of sample"),
    "energy_residual": ("energy_residual_state", "energy share of the residual"),
    "kl_median": ("kl", "median KL(p || p~), nats"),
    "spearman_relerr_kl": ("spearman_relerr_kl", "Spearman of RelErr (state) and KL over tokens"),
}


def updates_report(study: UpdatesStudy) -> dict[str, Any]:
    """Layer updates of a model as JSON values; medians are over query tokens."""
    estimates = {
        (row["block"], row["quantity"]): (row["value"], row["ci_low"], row["ci_high"])
        for row in study.summary().to_dict("records")
    }
    depth = study.fits.states.depth
    layers = []
    for block in range(depth):
        row: dict[str, Any] = {"layer": block}
        for key, (quantity, _) in _UPDATES.items():
            value, low, high = estimates[block, quantity]
            row |= {key: value, f"{key}_ci_low": low, f"{key}_ci_high": high}
        layers.append(row)
    sizes = study.settings.sizes
    return {
        "model": study.fits.session.files.name,
        "measure": "layer_updates",
        "map": study.classes[0],
        "tokens": sizes.query_tokens,
        "neighbours": sizes.neighbours,
        "mode": "all",
        "interval": "95 %: bootstrap over sequences",
        "statistics": {key: text for key, (_, text) in _UPDATES.items()},
        "provenance": provenance(
            study.fits.kl_inputs(0), draws=sizes.bootstrap_draws, **study.fits.states.facts
        ),
        "layers": layers,
    }


def updates_arrays(study: FitsStudy) -> dict[str, np.ndarray]:
    """The arrays behind the figures of one class of map."""
    states, (name,) = study.states, study.classes
    index = study.query_index
    sequences, offsets = np.divmod(index, states.tokens.shape[1] - states.skip)
    hidden = [states.at(f"H_{layer}") for layer in range(states.depth + 1)]
    blocks = [study.block(block) for block in range(states.depth)]
    return {
        "bank_states": np.stack([states.bank(h) for h in hidden]),
        "query_states": np.stack([states.query(h)[index] for h in hidden]),
        "query_out": states.query(states.at("out"))[index],
        "unembedding": states.artefact.array("unembedding"),
        "bank_token_ids": states.bank(states.tokens),
        "token_ids": states.query(states.tokens)[index],
        "positions": offsets + states.skip,
        "sequences": sequences,
        "predicted": np.stack([block.fits.array(f"predicted_{name}") for block in blocks]),
        "neighbours": np.stack([block.fits.array("neighbours") for block in blocks]),
        "kl": np.stack([block.kl["kl"].to_numpy() for block in blocks]),
    }


def check_array_file(path: Path) -> None:
    """Refuse a file name that NumPy would change, before anything is computed.

    Raises:
        UsageError: it does not end in .npz, or its folder is not there.
        LayergeomError: the folder cannot be written to.
    """
    if path.suffix != ".npz":
        raise UsageError(f"--save-arrays takes a file that ends in .npz, got {path}.")
    if not path.resolve().parent.is_dir():
        raise UsageError(f"the folder of {path} does not exist.")
    check_writable(path.resolve().parent)


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as one .npz file, whole."""
    with whole_file(path) as partial:
        np.savez(partial, **arrays)  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """Values as strict JSON has them: an undefined number is null."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def layer_table(report: Mapping[str, Any], columns: tuple[str, ...]) -> pd.DataFrame:
    """Chosen columns of a report's layers, for the terminal."""
    return pd.DataFrame(report["layers"])[list(columns)]
