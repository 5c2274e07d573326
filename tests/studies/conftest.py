"""One tiny measurement that the tests of the studies share."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layergeom.studies import Session, Settings, Sizes
from tiny_models import save_tiny

#: Small, and with a number of query tokens that the sequences cannot share evenly.
SIZES = Sizes(
    sequence_length=16,
    bank_sequences=9,
    query_sequences=4,
    query_tokens=50,
    replaced_sequences=2,
    single_positions=6,
    bootstrap_draws=10,
    neighbours=8,
    rank=3,
    subspace_dim=4,
)


@pytest.fixture(scope="session")
def tiny_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A saved GPT-NeoX and a text file, as a user would give them."""
    folder: Path = tmp_path_factory.mktemp("given")
    rng = np.random.default_rng(0)
    words = ["layer", "norm", "state", "block", "token", "head", "rank", "angle", "tells"]
    stretches = [" ".join(rng.choice(words, 70)) + "." for _ in range(80)]
    text = folder / "text.txt"
    text.write_text("\n\n".join(stretches))
    return Settings(str(save_tiny(folder / "tiny-neox", adds_bos=True)), str(text), SIZES, seed=3)


@pytest.fixture
def session(tiny_settings: Settings) -> Session:
    """A fresh session: nothing in memory, whatever is stored on disk."""
    return Session(tiny_settings)


@pytest.fixture
def readout_session(tiny_settings: Settings) -> Session:
    """The same, with samples of tokens for Subspace PGA that its text can fill."""
    sizes = SIZES.model_copy(update={"pga_tokens": 40, "pga_samples": 4, "null_subspaces": 12})
    return Session(replace(tiny_settings, sizes=sizes))
