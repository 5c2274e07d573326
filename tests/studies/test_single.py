"""Which positions are replaced alone, and what is stored of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from layergeom.errors import UsageError
from layergeom.studies import FitsStudy, Session
from layergeom.studies.single import SinglePositionsStudy
from reference.kl import divergence
from tiny_models import DEPTH

BANK = 9


def study_of(session: Session, **sizes: int) -> SinglePositionsStudy:
    changed = session.settings.sizes.model_copy(update=sizes)
    fits = FitsStudy(Session(replace(session.settings, sizes=changed)), ("orthogonal", "diagonal"))
    return SinglePositionsStudy(fits)


@pytest.mark.parametrize(("asked", "each"), [(2, 1), (6, 3), (7, 4), (26, 13)])
def test_positions_are_shared_by_the_sequences_and_as_many_as_asked(
    session: Session, asked: int, each: int
) -> None:
    study = study_of(session, single_positions=asked)
    sequences, positions = study.places
    assert len(sequences) == len(positions) == asked
    assert len(np.unique(positions)) == each
    assert len(set(zip(sequences, positions, strict=True))) == asked
    assert set(zip(sequences, positions, strict=True)) <= set(
        zip(*study.fits.replaced_places, strict=True)
    )
    # One from each of equal stretches of positions 1 to 13.
    stretches = np.array_split(np.arange(1, 14), each)
    chosen = np.unique(positions)
    for stretch, position in zip(stretches, chosen, strict=True):
        assert position in stretch


def test_more_positions_than_are_replaced_are_refused_with_both_numbers(session: Session) -> None:
    with pytest.raises(UsageError, match=r"27 single positions .* 2 sequences, which share 13"):
        _ = study_of(session, single_positions=27).places


def test_kl_is_that_of_the_network_with_one_stored_prediction_in_place(session: Session) -> None:
    study = study_of(session)
    table, fits = study.table(), study.fits
    assert study.sampled == 6
    assert len(table) == 6 * DEPTH
    network, places = fits.session.model.network, list(zip(*fits.replaced_places, strict=True))
    for row in table.iloc[::4].to_dict("records"):
        place = (row["sequence"], row["position"])
        predicted = fits.predicted(row["block"], "orthogonal")[places.index(place)]
        ids = torch.from_numpy(fits.states.tokens[[BANK + row["sequence"]]])

        def change(_m, _a, out, row=row, predicted=predicted):  # type: ignore[no-untyped-def]
            out = out.clone()
            out[0, row["position"]] = torch.from_numpy(predicted)
            return out

        with torch.no_grad():
            before = network(ids, use_cache=False).logits[0, row["position"]].numpy()
            layer = network.gpt_neox.layers[row["block"]]
            handle = layer.register_forward_hook(change)
            after = network(ids, use_cache=False).logits[0, row["position"]].numpy()
            handle.remove()
        assert row["kl"] == pytest.approx(divergence(before, after), abs=1e-6)
        own = fits.states.at(f"H_{row['block'] + 1}")[BANK + row["sequence"], row["position"]]
        assert row["length"] == pytest.approx(np.linalg.norm(own), rel=1e-6)
        error = np.linalg.norm(own - predicted) / np.linalg.norm(own)
        assert row["rel_err_state"] == pytest.approx(error, rel=1e-5)
