"""Probes end to end on a small model: planted classes, chance, folds, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layergeom.errors import NotMeasurableError, UsageError
from layergeom.geometry.probes import probe_accuracy
from layergeom.models.language_model import load
from layergeom.models.pooling import pooled_states
from layergeom.studies import ProbeStudy, Session, Settings, Sizes
from layergeom.studies.probes import FOLDS
from tiny_models import DEPTH

SIZES = Sizes(
    sequence_length=40,
    bank_sequences=8,
    query_sequences=2,
    pga_tokens=30,
    pga_samples=2,
    null_subspaces=5,
    bootstrap_draws=20,
)
POINTS = ["H_0", "H_1", "H_2", "H_3", "out"]


@pytest.fixture(scope="module")
def settings(tiny_settings: Settings) -> Settings:
    """Articles in WikiText's form, each with a letter that it likes."""
    text = Path(tiny_settings.corpus).with_name("articles.txt")
    rng = np.random.default_rng(0)
    articles = []
    for letter in "abcd":
        words = ["".join(rng.choice([letter] * 2 + list("etoinshrlumf"), 6)) for _ in range(700)]
        articles.append(f"\n = {letter} = \n\n {' '.join(words)} \n")
    text.write_text("".join(articles))
    return replace(tiny_settings, corpus=str(text), sizes=SIZES)


@pytest.fixture(scope="module")
def study(settings: Settings) -> ProbeStudy:
    return ProbeStudy(Session(settings))


def write(folder: Path, texts: list[str], labels: list[str]) -> str:
    path = folder / "given.csv"
    rows = [f"{label},{text}" for label, text in zip(labels, texts, strict=True)]
    path.write_text("label,text\n" + "\n".join(rows) + "\n")
    return str(path)


def test_every_point_and_pooling_has_an_accuracy_with_its_interval(study: ProbeStudy) -> None:
    table = study.table()
    assert list(table["point"].unique()) == POINTS
    assert list(table["pooling"].unique()) == ["mean", "last"]
    assert len(table) == 10
    assert list(table[table["pooling"] == "mean"]["depth"]) == [*range(DEPTH + 1), DEPTH]
    assert (table["chance"] == 0.25).all()
    assert table["accuracy"].between(0, 1).all()
    assert (table["ci_low"] <= table["accuracy"]).all()
    assert study.facts == {"classes": 4, "texts": 48, "folds": FOLDS, "tokens": 40}


def test_classes_that_differ_in_their_letters_are_told_apart(study: ProbeStudy) -> None:
    table = study.table()
    mean = table[(table["pooling"] == "mean") & (table["point"] == "H_0")]
    assert mean["accuracy"].item() > 0.95


def test_accuracies_are_those_of_a_probe_on_the_pooled_states(
    study: ProbeStudy, settings: Settings
) -> None:
    model = load(settings.model)
    sequences = [[model.bos_id(), *model.encode(text)][:40] for text in study.labelled.texts]
    pooled = pooled_states(model, sequences, 1)
    folds = study.folds()
    for pooling, point in [("mean", 2), ("last", 1)]:
        expected = probe_accuracy(
            getattr(pooled, pooling)[point], study.labelled.labels, FOLDS, settings.seed
        )
        rows = folds[(folds["pooling"] == pooling) & (folds["point"] == POINTS[point])]
        np.testing.assert_allclose(rows["accuracy"], expected, atol=1e-9)


def test_labels_at_random_are_guessed_at_chance(
    study: ProbeStudy, settings: Settings, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdefgh "), 20)) + "x" for _ in range(120)]
    given = write(tmp_path, texts, [str(i) for i in rng.integers(0, 2, 120)])
    table = ProbeStudy(Session(settings), given).table()
    assert 0.3 < table["accuracy"].mean() < 0.7
    assert table["chance"].iloc[0] == pytest.approx(0.5, abs=0.1)


def test_texts_of_any_length_are_read_to_the_sequence_length(
    settings: Settings, tmp_path: Path
) -> None:
    texts = [("a" if i % 2 else "b") * (3 + 9 * (i % 8)) for i in range(40)]
    labels = ["odd" if i % 2 else "even" for i in range(40)]
    study = ProbeStudy(Session(settings), write(tmp_path, texts, labels))
    table = study.table()
    assert (table["accuracy"] == 1.0).all()
    assert study.facts["texts"] == 40


def test_correlation_with_z_is_between_the_layers_of_both(study: ProbeStudy) -> None:
    table = study.correlations()
    assert list(table["pooling"]) == ["mean", "last"]
    assert table["value"].dropna().between(-1, 1).all()


def test_stored_accuracies_are_read_without_the_model(
    study: ProbeStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = study.table()

    def refuse(*_: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr("layergeom.models.language_model.load_files", refuse)
    assert ProbeStudy(Session(study.settings)).table().equals(table)


def test_a_corpus_without_long_articles_is_refused(tiny_settings: Settings) -> None:
    with pytest.raises(NotMeasurableError, match="telling articles apart needs 2"):
        ProbeStudy(Session(tiny_settings)).table()


def test_one_class_or_too_few_texts_are_refused_before_the_model_is_needed(
    settings: Settings, tmp_path: Path
) -> None:
    session = Session(replace(settings, model="no-such-model"))
    one = write(tmp_path, ["x"] * 9, ["a"] * 9)
    with pytest.raises(NotMeasurableError, match="one class only"):
        ProbeStudy(session, one).table()
    few = write(tmp_path, ["x"] * 9, ["a"] * 6 + ["b"] * 3)
    with pytest.raises(NotMeasurableError, match=r"'b' .* has 3 texts, fewer than the 5 folds"):
        ProbeStudy(session, few).table()


def test_a_text_without_a_token_left_is_refused(settings: Settings, tmp_path: Path) -> None:
    sizes = SIZES.model_copy(update={"skip_positions": 4})
    given = write(tmp_path, ["abcdef"] * 9 + ["ab"] * 9, ["a"] * 9 + ["b"] * 9)
    with pytest.raises(UsageError, match=r"text 10 of given\.csv has 3 tokens"):
        ProbeStudy(Session(replace(settings, sizes=sizes)), given).table()
