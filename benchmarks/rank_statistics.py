"""Subspace PGA of one layer: ours, SciPy's functions, and two packages for such correlations."""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from benchmarks.data import layer
from benchmarks.timing import Row, median_seconds, once
from layergeom import geometry
from layergeom.geometry.threads import thread_count

#: Subspaces that the plain way is timed on.
_FEW = 8


@dataclass(frozen=True)
class Case:
    """One layer's states with its subspaces."""

    states: np.ndarray
    readout: np.ndarray
    null: np.ndarray


def case(tokens: int, width: int, k: int, subspaces: int) -> Case:
    """A made-up layer and its subspaces."""
    rng = np.random.default_rng(0)
    states = layer(rng, tokens, width)
    readout = geometry.readout_basis(rng.standard_normal((8 * width, width)), k)
    return Case(states, readout, geometry.random_subspaces(width, k, subspaces, rng))


def pga(tokens: int = 1000, width: int = 576, k: int = 100, subspaces: int = 100) -> Row:
    """Ours and SciPy's, with the sort that every rank statistic is measured by."""
    from reference import pga as plain

    made = case(tokens, width, k, subspaces)

    def ours() -> geometry.PGASample:
        return geometry.subspace_pga(made.states, made.readout, made.null)

    found, seconds = ours(), median_seconds(ours)
    few = made.null[:_FEW]
    results: list[tuple[float, np.ndarray]] = []
    plain_seconds = once(
        lambda: results.append(plain.subspace_pga(made.states, made.readout, few, count=1))
    )
    rho, rho_null = results[0]
    difference = max(
        abs(rho - found.rho_readout), float(np.abs(rho_null - found.rho_null[: len(few)]).max())
    )
    sort = _sort_seconds(tokens)
    each = seconds * thread_count() / (subspaces + 1)
    return Row(
        f"Subspace PGA, {tokens:,} tokens, d {width}, k {k}, {subspaces} null subspaces",
        thread_count(),
        seconds,
        plain_seconds * (subspaces + 1) / (len(few) + 1),
        "40 x" if thread_count() > 1 else "25 x",
        difference,
        f"a subspace {1e3 * each:.1f} ms a thread: {each / sort:.1f} times one sort of its "
        f"{tokens * (tokens - 1) // 2:,} distances ({1e3 * sort:.1f} ms)",
    )


def _sort_seconds(tokens: int) -> float:
    """One radix sort of as many packed keys as there are pairs."""
    from layergeom.geometry.compiled import sorted_keys

    pairs = tokens * (tokens - 1) // 2
    rng = np.random.default_rng(1)
    snapped = rng.integers(0, 1 << 30, pairs).astype(np.int32)
    payload = rng.permutation(pairs)
    return median_seconds(lambda: sorted_keys(snapped, payload))


def peers(tokens: int = 1000, width: int = 576, k: int = 100) -> list[Row]:
    """One null subspace by the packages' own Spearman of distance vectors, where they are here."""
    from layergeom.geometry.distances import snapped_cosine_distances
    from layergeom.geometry.ranks import reference_ranks, spearman_to_reference

    made = case(tokens, width, k, 2)
    centred = made.states.astype(np.float64) - made.states.mean(axis=0)
    inside = centred @ made.null[0]
    full, part = pdist(centred, "cosine"), pdist(inside, "cosine")
    reference = reference_ranks(snapped_cosine_distances(np.ascontiguousarray(centred.T)))
    columns = np.ascontiguousarray(inside.T)
    snapped = snapped_cosine_distances(columns)

    def ours() -> float:
        return spearman_to_reference(snapped, reference)

    seconds = median_seconds(ours)
    ways = {"SciPy's spearmanr": lambda: float(spearmanr(full, part).statistic)}
    if find_spec("rsatoolbox"):
        from rsatoolbox.rdm import RDMs, compare

        ways["rsatoolbox's compare"] = lambda: float(
            compare(RDMs(full[None]), RDMs(part[None]), method="spearman")[0, 0]
        )
    if find_spec("mne_rsa"):
        from mne_rsa import rsa

        ways["mne-rsa's rsa"] = lambda: float(rsa(part, full, metric="spearman"))
    return [
        Row(
            f"One rank correlation of {len(full):,} distances, against {name}",
            thread_count(),
            seconds,
            median_seconds(way, runs=3),
            "",
            abs(way() - ours()),
            "the reference ranked beforehand, as for every subspace but the first",
        )
        for name, way in ways.items()
    ]


def many_tokens(tokens: int = 10_000, width: int = 576, k: int = 100, subspaces: int = 100) -> Row:
    """One layer with as many pairs as the usual budget of memory holds."""
    made = case(tokens, width, k, subspaces)
    samples: list[geometry.PGASample] = []
    seconds = once(
        lambda: samples.append(geometry.subspace_pga(made.states, made.readout, made.null))
    )
    return Row(
        f"Subspace PGA, {tokens:,} tokens, d {width}, k {k}, {subspaces} null subspaces",
        thread_count(),
        seconds,
        float("nan"),
        "within 8 GiB",
        float("nan"),
        f"{samples[0].pairs:,} pairs, all of them; one run",
    )
