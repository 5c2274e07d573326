"""Bootstrap over sequences by really copying the tokens of each drawn sequence."""

import numpy as np
from scipy.stats import spearmanr


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
