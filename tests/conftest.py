"""What all tests share: a cache of their own, no network, and tiny models."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from layergeom.models.language_model import LanguageModel

# Both are read once, when the libraries are imported. On models this small, threads that wait for
# each other take five times as long as one.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's cache of models, corpora and results out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYERGEOM_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def tiny() -> Callable[[str], "LanguageModel"]:
    """Makes the tiny model of an architecture; made once, so never to be changed by a test."""
    from layergeom.models.language_model import wrap
    from tiny_models import tiny_network, tiny_tokenizer

    @cache
    def make(architecture: str) -> "LanguageModel":
        return wrap(f"tiny-{architecture}", tiny_network(architecture), tiny_tokenizer(), "no")

    return make
