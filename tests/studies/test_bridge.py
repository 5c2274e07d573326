"""The readout's shares of residual and update, and what goes with them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from layergeom.studies import BridgeStudy, Session
from layergeom.studies.bridge import SHARES
from reference import bootstrap
from tiny_models import DEPTH

BANK = 9


@pytest.fixture(scope="module")
def study(tiny_settings: Any) -> BridgeStudy:
    sizes = tiny_settings.sizes.model_copy(
        update={"pga_tokens": 40, "pga_samples": 3, "null_subspaces": 10}
    )
    return BridgeStudy(Session(replace(tiny_settings, sizes=sizes)))


def shares(study: BridgeStudy, block: int) -> dict[str, np.ndarray]:
    """Squared length inside the top right singular vectors of the unembedding, by token."""
    fits, states = study.updates.fits, study.pga.states
    readout = np.linalg.svd(states.artefact.array("unembedding").astype(np.float64))[2][:8]
    h, full = (
        states.at(f"H_{layer}")[BANK:][fits.query_places].astype(np.float64)
        for layer in (block, block + 1)
    )
    t = fits.predicted(block, "orthogonal").astype(np.float64)
    inside = {
        name: np.square(vectors @ readout.T).sum(axis=1) / np.square(vectors).sum(axis=1)
        for name, vectors in (("residual", full - t), ("update", t - h))
    }
    return {
        "readout_share_residual": inside["residual"],
        "readout_share_update": inside["update"],
        "readout_share_residual_minus_update": inside["residual"] - inside["update"],
    }


def test_shares_are_those_of_the_unembeddings_leading_directions(study: BridgeStudy) -> None:
    assert study.chance == 8 / 32
    table = study.table().set_index(["block", "quantity"])
    sequences, _ = study.updates.fits.query_places
    for block in range(DEPTH):
        for name, values in shares(study, block).items():
            found = table.loc[(block, name)]
            assert found["value"] == pytest.approx(np.median(values), rel=1e-4, abs=1e-6)
            drawn = bootstrap.medians(values, sequences, study.updates.decomposed_draws)
            ends = np.percentile(drawn, [2.5, 97.5])
            np.testing.assert_allclose(
                [found["ci_low"], found["ci_high"]], ends, rtol=1e-4, atol=1e-6
            )


def test_correlation_with_kl_is_over_the_replaced_tokens(study: BridgeStudy) -> None:
    table = study.table().set_index(["block", "quantity"])
    for block in range(DEPTH):
        effects = study.updates.fits.block(block).effects("orthogonal")
        share = shares(study, block)["readout_share_residual"][: len(effects)]
        expected = spearmanr(share, effects["kl"]).statistic
        found = table.loc[(block, "spearman_readout_share_kl")]
        assert found["value"] == pytest.approx(expected, abs=1e-9)
        assert found["ci_low"] <= found["ci_high"]
        assert np.isfinite(table.loc[(block, "partial_spearman_readout_share_kl"), "value"])


def test_correlations_over_blocks_take_z_above_the_block(study: BridgeStudy) -> None:
    found = study.correlations().set_index(["quantity", "against"])["value"]
    assert len(found) == 2 * len(SHARES)
    z = study.pga.profile().by_layer(1)
    z = z[z["point"].isin([f"H_{block + 1}" for block in range(DEPTH)])]["z"]
    kl = [
        study.updates.fits.block(block).effects("orthogonal")["kl"].median()
        for block in range(DEPTH)
    ]
    for name in SHARES:
        profile = [np.median(shares(study, block)[name]) for block in range(DEPTH)]
        assert found[name, "z"] == pytest.approx(spearmanr(profile, z).statistic)
        assert found[name, "kl"] == pytest.approx(spearmanr(profile, kl).statistic)
