"""Full update, tokenwise part and residual: lengths, cosines, angles and energy shares.

Source: Updates (arXiv 2604.02459), section 4. Both readings of "update" are computed:

* ``state``: full ``h'``, tokenwise ``T(h)``, residual ``r = h' - T(h)``;
* ``update``: full ``h' - h``, tokenwise ``T(h) - h``, the same residual.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from layergeom.geometry.errors import GeometryError

Reading = Literal["state", "update"]
READINGS: tuple[Reading, ...] = ("state", "update")
PARTS: tuple[str, ...] = ("full", "tokenwise", "residual")


def split_update(
    below: Float[np.ndarray, "tokens width"],
    above: Float[np.ndarray, "tokens width"],
    predicted: Float[np.ndarray, "tokens width"],
    reading: Reading,
) -> tuple[
    Float[np.ndarray, "tokens width"],
    Float[np.ndarray, "tokens width"],
    Float[np.ndarray, "tokens width"],
]:
    """Full, tokenwise and residual parts of each token's update, float64, in one reading."""
    h, h_next, t = (a.astype(np.float64) for a in (below, above, predicted))
    if reading == "state":
        return h_next, t, h_next - t
    return h_next - h, t - h, h_next - t


def _cosine(
    a: Float[np.ndarray, "tokens width"], b: Float[np.ndarray, "tokens width"]
) -> Float[np.ndarray, " tokens"]:
    """Cosine by token; NaN where either vector is zero, for a zero has no direction."""
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.einsum("ij,ij->i", a, b) / lengths, -1.0, 1.0)


def share_along(
    vectors: Float[np.ndarray, "tokens width"], directions: Float[np.ndarray, "tokens width"]
) -> Float[np.ndarray, " tokens"]:
    """Share of each vector's squared length along its direction: the squared cosine.

    NaN where either is a zero vector.
    """
    return _cosine(vectors.astype(np.float64), directions.astype(np.float64)) ** 2


def alignment(
    below: Float[np.ndarray, "tokens width"],
    above: Float[np.ndarray, "tokens width"],
    predicted: Float[np.ndarray, "tokens width"],
    reading: Reading,
) -> dict[str, Float[np.ndarray, " tokens"]]:
    """Relative error, cosines and angles of each token's update.

    Returns:
        ``rel_err`` = ``|r| / |full|``; ``cos_full_tokenwise``, ``cos_full_residual`` and
        ``cos_tokenwise_residual``; the three angles of the same names in degrees. NaN where a
        part is a zero vector.
    """
    full, tokenwise, residual = split_update(below, above, predicted, reading)
    lengths = np.linalg.norm(full, axis=1)
    lengths[lengths == 0.0] = np.nan
    columns = {"rel_err": np.linalg.norm(residual, axis=1) / lengths}
    pairs = {
        "full_tokenwise": (full, tokenwise),
        "full_residual": (full, residual),
        "tokenwise_residual": (tokenwise, residual),
    }
    for name, (a, b) in pairs.items():
        columns[f"cos_{name}"] = _cosine(a, b)
    for name in pairs:
        columns[f"angle_{name}"] = np.degrees(np.arccos(columns[f"cos_{name}"]))
    return columns


@dataclass(frozen=True)
class EnergyShares:
    """Energy inside dominant tokenwise subspaces of growing dimension, by sequence.

    Even sequences are one half, measured in the subspace of the odd ones, and the other way
    round.

    Attributes:
        inside: squared length inside the subspace of dimension 1 to q, summed over a sequence's
            tokens, for full, tokenwise and residual.
        total: squared length, summed likewise.
    """

    inside: Float[np.ndarray, "parts dims sequences"]
    total: Float[np.ndarray, "parts sequences"]

    def shares(self, weights: Float[np.ndarray, "draws sequences"]) -> Float[np.ndarray, "p d w"]:
        """Energy share by part and dimension, for each weighting of the sequences.

        The mean of the two halves' shares; NaN where a draw has none of a half.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            halves = [
                (self.inside[..., half::2] @ weights[:, half::2].T)
                / (self.total[..., half::2] @ weights[:, half::2].T)[:, None, :]
                for half in (0, 1)
            ]
        return 0.5 * (halves[0] + halves[1])


def dominant_subspace_energy(
    below: Float[np.ndarray, "tokens width"],
    above: Float[np.ndarray, "tokens width"],
    predicted: Float[np.ndarray, "tokens width"],
    sequences: Int[np.ndarray, " tokens"],
    reading: Reading,
    max_dim: int = 64,
) -> EnergyShares:
    """Energy of each part in the dominant tokenwise subspace, out of sample.

    The subspace is spanned by the top right singular vectors of the uncentred tokenwise part
    over half of the query sequences; the energies are measured on the other half, and the
    halves are swapped, so that every sequence is measured once.

    Args:
        below: states under the block.
        above: states above it.
        predicted: the tokenwise map's predictions.
        sequences: index of each token's sequence, 0 to S - 1; even ones are one half.
        reading: which reading of "update".
        max_dim: largest dimension; held to the width less one.

    Raises:
        GeometryError: a half without a token.
    """
    from scipy.linalg import eigh

    count = int(sequences.max()) + 1 if len(sequences) else 0
    halves = [int(np.count_nonzero(sequences % 2 == half)) for half in (0, 1)]
    if 0 in halves:
        raise GeometryError(
            f"two halves need even and odd sequences; they hold {halves[0]} and {halves[1]} tokens"
        )
    width = below.shape[1]
    dims = min(max_dim, width - 1)
    parts = split_update(below, above, predicted, reading)
    inside = np.zeros((3, dims, count))
    total = np.zeros((3, count))
    for half in (0, 1):
        fitted = parts[1][sequences % 2 != half]
        _, vectors = eigh(fitted.T @ fitted, subset_by_index=(width - dims, width - 1))
        basis = vectors[:, ::-1]
        measured = sequences % 2 == half
        for i, part in enumerate(parts):
            tokens = part[measured]
            cumulative = np.cumsum((tokens @ basis) ** 2, axis=1)
            energy = np.einsum("ij,ij->i", tokens, tokens)
            where = sequences[measured]
            for s in np.unique(where):
                inside[i, :, s] = cumulative[where == s].sum(axis=0)
                total[i, s] = energy[where == s].sum()
    return EnergyShares(inside, total)
