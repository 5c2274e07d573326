"""Bootstrap over sequences by really copying the tokens of each drawn sequence."""

import numpy as np
from scipy.stats import pearsonr, rankdata, spearmanr


def replicate(sequences: np.ndarray, multiplicities: np.ndarray) -> np.ndarray:
    """Indices of the tokens of one draw, each as often as its sequence was drawn."""
    return np.repeat(np.arange(len(sequences)), multiplicities[sequences])


def medians(values: np.ndarray, sequences: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Median over the tokens of each draw, those that are NaN left out."""
    return np.array([np.nanmedian(values[replicate(sequences, draw)]) for draw in draws])


def spearmans(x: np.ndarray, y: np.ndarray, sequences: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Spearman over the tokens of each draw."""
    drawn = [replicate(sequences, draw) for draw in draws]
    return np.array([spearmanr(x[tokens], y[tokens]).statistic for tokens in drawn])


def partial_spearman(x: np.ndarray, y: np.ndarray, given: np.ndarray) -> float:
    """Pearson's correlation of what least squares on the ranks of the given leaves of the ranks."""
    design = np.stack([np.ones(len(x)), *(rankdata(column) for column in given.T)], axis=1)
    left = []
    for values in (x, y):
        ranks = rankdata(values)
        left.append(ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0])
    return float(pearsonr(*left).statistic)


def partial_spearmans(
    x: np.ndarray, y: np.ndarray, given: np.ndarray, sequences: np.ndarray, draws: np.ndarray
) -> np.ndarray:
    """Partial Spearman over the tokens of each draw."""
    drawn = [replicate(sequences, draw) for draw in draws]
    return np.array([partial_spearman(x[tokens], y[tokens], given[tokens]) for tokens in drawn])
