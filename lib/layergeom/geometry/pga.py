"""Subspace PGA: are distances organised along the readout more than along random subspaces?

Source: Readout (arXiv 2605.17084), section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from layergeom.geometry.components import leading_components
from layergeom.geometry.distances import snapped_cosine_distances
from layergeom.geometry.errors import GeometryError
from layergeom.geometry.means import half_width_factor
from layergeom.geometry.memory import DEFAULT_MEMORY, group_count, ranking_threads, token_groups
from layergeom.geometry.ranks import ReferenceRanks, reference_ranks, spearman_to_reference
from layergeom.geometry.threads import map_threads

#: Subspaces projected on in one product: few, so that the last chunk leaves no thread idle for
#: long; the same whatever the number of threads.
_CHUNK = 4
#: Correlations that agree to this differ by rounding only.
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class PGASample:
    """Subspace PGA of one sample of tokens at one capture point.

    Attributes:
        rho_readout: Spearman between full-space distances and those in the readout subspace.
        rho_null: the same for each random subspace.
        z_error: standard error of z from ranking a sample of the pairs only; 0 where all pairs
            are ranked.
        pairs: number of pairs ranked; 0 where that is not known.
    """

    rho_readout: float
    rho_null: Float[np.ndarray, " subspaces"]
    z_error: float = 0.0
    pairs: int = 0

    @property
    def null_mean(self) -> float:
        """Mean of the null, mu."""
        return float(self.rho_null.mean())

    @property
    def null_std(self) -> float:
        """Standard deviation of the null, sigma (ddof 1)."""
        return float(self.rho_null.std(ddof=1))

    @property
    def z(self) -> float:
        """(rho_readout - mu) / sigma; NaN where the null has no spread beyond rounding."""
        if not self.null_std > _NO_SPREAD:
            return float("nan")
        return (self.rho_readout - self.null_mean) / self.null_std

    @property
    def p(self) -> float:
        """Empirical p-value (b + 1) / (m + 1), b random subspaces at least as high.

        NaN where a correlation is undefined: a gap is not significant.
        """
        if not np.isfinite([self.rho_readout, *self.rho_null]).all():
            return float("nan")
        at_least = int(np.count_nonzero(self.rho_null >= self.rho_readout))
        return (at_least + 1) / (len(self.rho_null) + 1)


@dataclass(frozen=True)
class PGAEstimate:
    """Mean over disjoint token samples, with its 95 % interval.

    Attributes:
        z: mean z over the samples.
        ci_low: lower end of the interval.
        ci_high: upper end of the interval.
        samples: number of samples; with one, the interval holds the null's own error only.
    """

    z: float
    ci_low: float
    ci_high: float
    samples: int


def subspace_pga_levels(
    states: Float[np.ndarray, "tokens width"],
    readout: Float[np.ndarray, "width k"],
    subspaces: Float[np.ndarray, "count width k"],
    levels: Sequence[int],
    memory: int = DEFAULT_MEMORY,
    seed: int = 0,
) -> dict[int, PGASample]:
    """Subspace PGA at several levels of common-component removal at once.

    A projection is linear, so each subspace is projected on once, and the removal of ``c``
    components is a rank-c correction of that projection.

    Where the distances of all pairs do not fit into the memory, the tokens are divided at random
    into groups that do. The correlations are then means over the groups, each over all pairs
    within it, and the sample says what that may move z by: the jackknife's standard error over
    groups, which errs on the safe side, for it also holds what other tokens would have changed.
    Mean and components are those of all tokens still.

    Args:
        states: hidden states of the sampled tokens.
        readout: orthonormal basis of the readout subspace.
        subspaces: orthonormal bases of the random subspaces, of the same dimension.
        levels: numbers of components to remove, such as ``(0, 1, 5, 10)``.
        memory: bytes that may be taken.
        seed: seed of the groups.

    Returns:
        One sample per level.

    Raises:
        GeometryError: states not finite, fewer than three tokens, bases that do not match,
            tokens that become zero vectors, or too little memory for any group.
    """
    tokens, width = states.shape
    if tokens < 3:
        raise GeometryError(f"Subspace PGA needs 3 tokens or more, got {tokens}")
    if readout.shape[0] != width or subspaces.shape[1:] != readout.shape:
        raise GeometryError(
            f"states of width {width}, a readout basis of shape {readout.shape} and random "
            f"bases of shape {subspaces.shape[1:]} do not match"
        )
    for name, array in (("states", states), ("bases", readout), ("bases", subspaces)):
        if not np.isfinite(array).all():
            raise GeometryError(f"the {name} hold values that are not finite")
    if not levels or min(levels) < 0:
        raise GeometryError(f"levels of removal are 0 or more, got {tuple(levels)}")
    centred = states.astype(np.float64)
    centred -= centred.mean(axis=0)
    directions = leading_components(centred, max(levels))
    columns = np.ascontiguousarray(centred.T)
    every = np.concatenate([readout[None], subspaces])
    groups = token_groups(tokens, group_count(tokens, width, len(levels), memory), seed)
    rho = np.array(
        [
            _correlations(columns.take(group, axis=1), directions, every, levels, memory)
            for group in groups
        ]
    )
    pairs = sum(len(group) * (len(group) - 1) // 2 for group in groups)
    return {level: _sample(rho[:, :, j], pairs) for j, level in enumerate(levels)}


def _correlations(
    columns: Float[np.ndarray, "width tokens"],
    directions: Float[np.ndarray, "width components"],
    bases: Float[np.ndarray, "count width k"],
    levels: Sequence[int],
    memory: int,
) -> Float[np.ndarray, "count levels"]:
    """Spearman between distances in full space and in each subspace, at each level."""
    width, tokens = columns.shape
    scores = directions.T @ columns
    threads = ranking_threads(tokens, width, len(levels), memory)

    def reference(level: int) -> ReferenceRanks:
        removed = columns - directions[:, :level] @ scores[:level]
        return reference_ranks(snapped_cosine_distances(removed))

    references = dict(zip(levels, map_threads(reference, levels, threads), strict=True))

    def correlations(chunk: Float[np.ndarray, "chunk width k"]) -> Float[np.ndarray, "chunk lv"]:
        # One large product for the whole chunk instead of one small product each.
        stacked = chunk.transpose(0, 2, 1).reshape(-1, width)
        projected = (stacked @ columns).reshape(len(chunk), -1, tokens)
        loadings = (stacked @ directions).reshape(*projected.shape[:2], directions.shape[1])
        rows = np.empty((len(chunk), len(levels)))
        for i in range(len(chunk)):
            for j, level in enumerate(levels):
                inside = projected[i] - loadings[i][:, :level] @ scores[:level]
                snapped = snapped_cosine_distances(inside)
                rows[i, j] = spearman_to_reference(snapped, references[level])
        return rows

    chunks = [bases[start : start + _CHUNK] for start in range(0, len(bases), _CHUNK)]
    return np.concatenate(map_threads(correlations, chunks, threads))


def _sample(rho: Float[np.ndarray, "groups count"], pairs: int) -> PGASample:
    """Means over groups of tokens, the readout's first, and what the groups leave open."""
    mean = rho.mean(axis=0)
    if len(rho) == 1:
        return PGASample(float(mean[0]), mean[1:], pairs=pairs)
    others = (rho.sum(axis=0) - rho) / (len(rho) - 1)
    left_out = np.array([PGASample(float(row[0]), row[1:]).z for row in others])
    error = np.sqrt((len(rho) - 1) * left_out.var())
    return PGASample(float(mean[0]), mean[1:], float(error), pairs)


def subspace_pga(
    states: Float[np.ndarray, "tokens width"],
    readout: Float[np.ndarray, "width k"],
    subspaces: Float[np.ndarray, "count width k"],
    ccr: int = 1,
    memory: int = DEFAULT_MEMORY,
    seed: int = 0,
) -> PGASample:
    """Subspace PGA of one sample of tokens (Readout, section 3).

    Args:
        states: hidden states of the sampled tokens.
        readout: orthonormal basis of the readout subspace, from ``readout_basis``.
        subspaces: orthonormal random bases, from ``random_subspaces``.
        ccr: leading principal components removed after centring.
        memory: bytes that may be taken.
        seed: seed of the groups of tokens where not all pairs fit into the memory.

    Raises:
        GeometryError: as for ``subspace_pga_levels``.
    """
    return subspace_pga_levels(states, readout, subspaces, (ccr,), memory, seed)[ccr]


def estimate_z(samples: Sequence[PGASample]) -> PGAEstimate:
    """Mean z over disjoint samples with its 95 % interval.

    ``z +- t(0.975, S-1) * sqrt(s^2/S + 1/m + z^2 / (2(m-1)))``: the last two terms are the error
    of the null's own mean and standard deviation, which samples that share their subspaces
    would otherwise hide. With one sample there is no ``s``: the interval is the null's error
    and that of ranking a sample of the pairs, with ``t(0.975, m-1)``.

    Raises:
        GeometryError: no sample.
    """
    if not samples:
        raise GeometryError("no sample to take the mean of")
    z = np.array([sample.z for sample in samples])
    count, m = len(samples), len(samples[0].rho_null)
    mean = float(z.mean())
    null_error = 1.0 / m + mean**2 / (2.0 * (m - 1))
    if count == 1:
        own_error = null_error + samples[0].z_error ** 2
        half = half_width_factor(m - 1) * float(np.sqrt(own_error))
    else:
        spread = float(z.var(ddof=1)) / count + null_error
        half = half_width_factor(count - 1) * float(np.sqrt(spread))
    return PGAEstimate(mean, mean - half, mean + half, count)
