"""Two small models end to end: matched states, agreement by slow plain code, and refusals."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from layergeom.errors import NotMeasurableError, UsageError
from layergeom.geometry.convergence import ConvergenceSample
from layergeom.models.capture import capture
from layergeom.models.language_model import load
from layergeom.studies import ConvergenceStudy, Session, Settings, Sizes, compare_pairs
from layergeom.studies.convergence import estimates
from layergeom.studies.pga import PGAStudy
from reference.pga import remove_components
from tiny_models import DEPTH, ROWS, WIDTH, save_tiny

SIZES = Sizes(
    sequence_length=24,
    bank_sequences=9,
    query_sequences=4,
    pga_tokens=50,
    pga_samples=3,
    null_subspaces=4,
)
POINTS = ["H_0", "H_1", "H_2", "H_3", "out"]


def merging(folder: Path) -> None:
    """Give a saved model a tokenizer that merges characters to words, in the rows it has."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=["<unk>"], show_progress=False)
    text = "layer norm state block token head rank angle tells.\n" * 9
    tokenizer.train_from_iterator([text], trainer)
    assert tokenizer.get_vocab_size() <= ROWS
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>").save_pretrained(folder)


@pytest.fixture(scope="module")
def given(tiny_settings: Settings) -> Settings:
    return replace(tiny_settings, sizes=SIZES)


@pytest.fixture(scope="module")
def other(given: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = save_tiny(tmp_path_factory.mktemp("other") / "tiny-llama", "llama")
    merging(folder)
    return replace(given, model=str(folder))


@pytest.fixture(scope="module")
def study(given: Settings, other: Settings) -> ConvergenceStudy:
    return ConvergenceStudy(Session(given), Session(other))


def test_both_models_have_read_the_same_characters_at_matched_states(
    study: ConvergenceStudy, given: Settings, other: Settings
) -> None:
    assert study.names == ("tiny-neox", "tiny-llama")
    first = study.matched.array("first_H_2")
    assert first.shape == (3, 50, WIDTH)
    # The last character read decides the state at H_0 of a model of characters.
    models = [load(settings.model) for settings in (given, other)]
    embedding = models[0].network.get_input_embeddings().weight.detach().numpy()
    characters = study.matched.array("first_H_0")
    distance = np.abs(characters[:, :, None] - embedding).sum(axis=-1)
    assert distance.min(axis=-1).max() < 1e-5
    last = [models[0].tokenizer.decode([int(i)]) for i in distance.argmin(axis=-1).ravel()]
    embedding = models[1].network.get_input_embeddings().weight.detach().numpy()
    tokens = study.matched.array("second_H_0")
    distance = np.abs(tokens[:, :, None] - embedding).sum(axis=-1)
    words = [models[1].tokenizer.decode([int(i)]) for i in distance.argmin(axis=-1).ravel()]
    assert [word[-1] for word in words] == last
    assert max(map(len, words)) > 3


def test_a_matrix_entry_is_the_rank_correlation_of_plain_distances(
    study: ConvergenceStudy,
) -> None:
    matrix = study.matrix()
    assert list(matrix["first_point"].unique()) == POINTS
    assert len(matrix) == 5 * 5 * 3
    readouts = [PGAStudy(session).readout for session in study.sessions]
    for first, second, space in [("H_1", "H_3", "full"), ("H_2", "out", "readout")]:
        expected = []
        for sample in range(3):
            distances = []
            for name, readout in zip((f"first_{first}", f"second_{second}"), readouts, strict=True):
                states = study.matched.array(name)[sample].astype(np.float64)
                states = remove_components(states, 1)
                distances.append(
                    pdist(states @ readout if space == "readout" else states, "cosine")
                )
            expected.append(spearmanr(*distances).statistic)
        row = matrix[
            (matrix["first_point"] == first)
            & (matrix["second_point"] == second)
            & (matrix["space"] == space)
        ]
        # Equal characters in equal surroundings are at distances equal but for rounding.
        assert row["value"].item() == pytest.approx(np.mean(expected), abs=1e-4)


def test_matched_depth_repeats_the_matrix_and_adds_random_subspaces(
    study: ConvergenceStudy,
) -> None:
    table, matrix = study.along_depth(), study.matrix()
    assert list(table["relative_depth"].unique()) == [0.0, 1 / 3, 2 / 3, 1.0]
    assert list(table["first_point"].unique()) == POINTS[: DEPTH + 1]
    wide = table.pivot_table(index="first_point", columns="quantity", values="value")
    for space in ("full", "readout", "random"):
        rows = matrix[
            (matrix["space"] == space) & (matrix["first_point"] == matrix["second_point"])
        ]
        own = rows.set_index("first_point")["value"].drop("out")
        np.testing.assert_allclose(wide[space], own, atol=1e-12)
    np.testing.assert_allclose(wide["readout_minus_full"], wide["readout"] - wide["full"])
    np.testing.assert_allclose(wide["readout_minus_random"], wide["readout"] - wide["random"])
    assert (table["ci_low"] < table["value"]).all()
    assert (table["value"] < table["ci_high"]).all()


def test_a_model_agrees_with_its_copy_everywhere_but_in_random_subspaces(
    given: Settings, tmp_path: Path
) -> None:
    copy = shutil.copytree(given.model, tmp_path / "copy")
    study = ConvergenceStudy(Session(given), Session(replace(given, model=str(copy))))
    wide = study.along_depth().pivot_table(
        index="first_point", columns="quantity", values="value", observed=True
    )
    np.testing.assert_allclose(wide["full"], 1.0)
    np.testing.assert_allclose(wide["readout"], 1.0)
    # Each model draws its own subspaces, though both have the same width.
    assert (wide["random"] < 0.95).all()


def test_stored_agreement_is_read_without_the_models(
    study: ConvergenceStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = study.along_depth()

    def refuse(*_: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("layergeom.models.language_model.load_files", refuse)
    again = ConvergenceStudy(*(Session(session.settings) for session in study.sessions))
    assert again.along_depth().equals(table)
    assert again.facts["passages"] == 48


def test_states_at_matched_tokens_are_those_of_the_model(
    study: ConvergenceStudy, given: Settings
) -> None:
    # The last layer of one matched token, from the characters before it alone.
    model = load(given.model)
    stored = study.matched.array("first_H_3")[0, 0]
    bos = model.bos_id()
    found = []
    for document in study.corpus.documents:
        ids = np.array(model.encode(document.text))
        for start in range(0, len(ids) - 23, 192):
            for offset in range(12):  # a passage begins with a word
                window = ids[start + offset : start + offset + 23]
                if len(window) == 23:
                    found.append([bos, *window])
    states = capture(model, np.array(found)).hidden[3].reshape(-1, WIDTH)
    assert np.abs(states - stored).max(axis=1).min() < 1e-4


def test_models_are_compared_on_one_text_size_and_seed_only(given: Settings) -> None:
    for change in ({"seed": 9}, {"corpus": "another.txt"}, {"sizes": Sizes()}):
        with pytest.raises(UsageError, match=f"compared with one {next(iter(change))}"):
            ConvergenceStudy(Session(given), Session(replace(given, **change)))


def sample(full: float, readout: float, *random: float) -> ConvergenceSample:
    return ConvergenceSample(full, readout, np.array(random))


def test_intervals_are_student_t_over_samples_with_the_shared_null() -> None:
    found = estimates([sample(0.5, 0.7, 0.2, 0.4, 0.6), sample(0.7, 0.8, 0.4, 0.5, 0.6)])
    assert found["full"].value == pytest.approx(0.6)
    half = 12.706204736174694 * 0.1  # t(0.975, 1), and sqrt(0.02 / 2)
    assert found["full"].ci_high == pytest.approx(0.6 + half)
    assert found["readout_minus_full"].value == pytest.approx(0.15)
    assert found["readout_minus_full"].ci_low == pytest.approx(0.15 - 12.706204736174694 * 0.05)
    # Means over subspaces 0.4 and 0.5; by subspace 0.3, 0.45 and 0.6, variance 0.0225.
    assert found["readout_minus_random"].value == pytest.approx(0.3)
    half = 12.706204736174694 * np.sqrt(0.0 + 0.0225 / 3)
    assert found["readout_minus_random"].ci_low == pytest.approx(0.3 - half)
    assert found["random"].ci_high == pytest.approx(
        0.45 + 12.706204736174694 * np.sqrt(0.005 / 2 + 0.0225 / 3)
    )


def test_one_sample_has_no_interval() -> None:
    found = estimates([sample(0.5, 0.7, 0.2, 0.4)])
    assert found["full"].value == 0.5
    assert np.isnan(found["full"].ci_low)


def test_pairs_are_neighbours_in_the_list_and_one_that_cannot_match_is_left_out(
    given: Settings, other: Settings, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    folder = save_tiny(tmp_path / "following", "llama")
    known = [form for word in ("layer", "norm", "state") for form in (f" {word}", f"{word} ")]
    whole = Tokenizer(
        models.WordLevel({token: i for i, token in enumerate(["<unk>", *known])}, "<unk>")
    )
    whole.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    PreTrainedTokenizerFast(tokenizer_object=whole, unk_token="<unk>").save_pretrained(folder)
    words = replace(given, model=str(folder))
    leading = save_tiny(tmp_path / "leading", "llama")
    whole.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_next")
    PreTrainedTokenizerFast(tokenizer_object=whole, unk_token="<unk>").save_pretrained(leading)
    sessions = [Session(s) for s in (given, other, words, replace(given, model=str(leading)))]
    found = compare_pairs(sessions[:2])
    assert [study.names for study in found.studies] == [("tiny-neox", "tiny-llama")]
    assert found.left_out == {}
    table = found.along_depth()
    assert list(table.columns[:3]) == ["first_model", "second_model", "relative_depth"]
    assert set(found.matrices()["second_model"]) == {"tiny-llama"}
    with pytest.raises(NotMeasurableError, match="no common end position"):
        compare_pairs(sessions[2:])
    partly = compare_pairs([*sessions[:2], sessions[2], sessions[3]])
    assert ("following", "leading") in partly.left_out
    assert partly.studies[0].names == ("tiny-neox", "tiny-llama")


def test_one_model_cannot_be_compared(given: Settings) -> None:
    with pytest.raises(NotMeasurableError, match="1 model given"):
        compare_pairs([Session(given)])
