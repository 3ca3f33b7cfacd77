"""Prefixes of known models, and the embedder on fastembed's list: a stub stands for a library without model files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clawmark.embed import Failure, choose, fast, local, of_space
from clawmark.embed.fast import FastEmbedder
from clawmark.embed.models import prefixes
from clawmark.errors import EmbedderDown, EmbedderError
from clawmark.model import Space
from clawmark.settings import Settings

INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
REPRESENT = "Represent this sentence for searching relevant passages: "
E5, NOMIC, NONE = ("query: ", "passage: "), ("search_query: ", "search_document: "), ("", "")


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("intfloat/multilingual-e5-small", E5),
        ("multilingual-e5-small-q4", E5),
        ("e5-large-v2", E5),
        ("intfloat/e5-base", E5),
        ("intfloat/multilingual-e5-large-instruct", (INSTRUCT + " ", "")),
        ("text-embedding-intfloat-multilingual-e5-large-instruct", (INSTRUCT + " ", "")),
        ("e5-mistral-7b-instruct", (INSTRUCT + " ", "")),
        ("nomic-embed-text", NOMIC),
        ("nomic-embed-text:latest", NOMIC),
        ("nomic-ai/nomic-embed-text-v1", NOMIC),
        ("text-embedding-nomic-embed-text-v1.5", NOMIC),
        ("text-embedding-nomic-embed-text-v1.5@q8_0", NOMIC),
        ("/models/nomic-embed-text-v1.5.Q4_K_M.gguf", NOMIC),
        ("C:\\models\\Nomic_Embed_Text_v2_MoE.f16.GGUF", NOMIC),
        ("BAAI/bge-m3", NONE),
        ("bge-m3:567m", NONE),
        ("BAAI/bge-small-en-v1.5", (REPRESENT, "")),
        ("bge-large", (REPRESENT, "")),
        ("BAAI/bge-large-zh-v1.5", ("为这个句子生成表示以用于检索相关文章：", "")),
        ("thenlper/gte-large", NONE),
        ("Alibaba-NLP/gte-multilingual-base", NONE),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", (INSTRUCT + " ", "")),
        ("mxbai-embed-large:335m", (REPRESENT, "")),
        ("jinaai/jina-embeddings-v2-base-de", NONE),
        (
            "jina-embeddings-v3",
            ("Represent the query for retrieving evidence documents: ", "Represent the document for retrieval: "),
        ),
        ("jinaai/jina-embeddings-v4", ("Query: ", "Passage: ")),
        ("hf.co/Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0", (INSTRUCT, "")),
        ("qwen3-embedding:0.6b", (INSTRUCT, "")),
        ("google/embeddinggemma-300m", ("task: search result | query: ", "title: none | text: ")),
        ("text-embedding-embeddinggemma-300m-qat", ("task: search result | query: ", "title: none | text: ")),
        ("snowflake-arctic-embed:22m", (REPRESENT, "")),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", (REPRESENT, "")),
        ("snowflake-arctic-embed2", ("query: ", "")),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", ("query: ", "")),
        ("all-minilm:33m", NONE),
        ("sentence-transformers/all-MiniLM-L6-v2", NONE),
    ],
)
def test_a_known_model_is_known_by_every_name_it_is_served_under(model: str, wanted: tuple[str, str]) -> None:
    assert prefixes(model) == wanted
    assert prefixes(f" {model.upper()} ") == wanted


@pytest.mark.parametrize(
    "model",
    "m / : text-embedding-3-small text-embedding-ada-002 bge-multilingual-gemma2 e5 e50-small note5-small "
    "nomic-embed-textual multilingual embeddinggemma2 qwen3 ".split(" "),
)
def test_any_other_model_is_unknown(model: str) -> None:
    assert prefixes(model) is None


# --- fastembed --------------------------------------------------------------------------------------------------------


class TextEmbedding:
    """What is used of fastembed's class, with vectors that tell query from passage."""

    made: list[dict[str, Any]]
    given: list[tuple[str, list[str]]]
    fails: Exception | None

    @classmethod
    def list_supported_models(cls) -> list[dict[str, Any]]:
        return [{"model": fast.DEFAULT_MODEL, "dim": 3}, {"model": "intfloat/multilingual-e5-large", "dim": 3}]

    def __init__(self, **options: Any) -> None:
        if self.fails is not None:
            raise self.fails
        self.made.append(options)

    def _embed(self, kind: str, texts: Sequence[str]) -> Iterator[Any]:
        self.given.append((kind, list(texts)))
        for text in texts:
            yield np.array([len(text), 0.0, float("nan") if "nan" in text else float(kind == "query")])

    def query_embed(self, query: Sequence[str], batch_size: int) -> Iterator[Any]:
        return self._embed("query", query)

    def passage_embed(self, texts: Sequence[str], batch_size: int) -> Iterator[Any]:
        return self._embed("passage", texts)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[TextEmbedding]:
    stub: Any = ModuleType("fastembed")
    kind = type("Stub", (TextEmbedding,), {"made": [], "given": [], "fails": None})
    stub.TextEmbedding = kind
    monkeypatch.setitem(sys.modules, "fastembed", stub)
    monkeypatch.setattr(fast, "available", lambda: True)
    monkeypatch.setattr(fast, "version", lambda name: "0.9.1")
    return kind


def test_the_space_names_library_and_model_and_needs_no_model_file(library: type[TextEmbedding]) -> None:
    embedder = FastEmbedder(fast.DEFAULT_MODEL, threads=1)
    assert embedder.space == Space(f"fastembed-0.9.1/{fast.DEFAULT_MODEL}", 3, "", "")
    assert (embedder.fixed, embedder.endpoint, library.made) == (True, "", [])


def test_queries_and_passages_go_their_own_ways(library: type[TextEmbedding], tmp_path: Path) -> None:
    embedder = FastEmbedder("intfloat/multilingual-e5-large", threads=2, cache=tmp_path)
    passage, bad = embedder.embed(["xy", "nan"])
    (query,) = embedder.embed(["xy"], "query")
    assert library.given == [("passage", ["passage: xy", "passage: nan"]), ("query", ["query: xy"])]
    assert bad == Failure("not_finite")
    assert not isinstance(passage, Failure) and not isinstance(query, Failure)
    assert np.allclose(passage, [1, 0, 0]) and np.allclose(query, np.array([9, 0, 1]) / np.sqrt(82))
    assert library.made == [
        {
            "model_name": "intfloat/multilingual-e5-large",
            "threads": 2,
            "cache_dir": str(tmp_path),
            "local_files_only": False,
        }
    ]


@pytest.mark.parametrize(
    "error", [ValueError("Could not load model\nfrom any source."), OSError("x"), Exception("onnx")]
)
def test_a_model_that_cannot_be_loaded_is_down_in_one_line(library: type[TextEmbedding], error: Exception) -> None:
    library.fails = error
    with pytest.raises(EmbedderDown, match=r"cannot be loaded.*recall runs on words") as down:
        FastEmbedder(fast.DEFAULT_MODEL, threads=1).embed(["x"])
    assert "\n" not in str(down.value)
    library.fails = None
    assert len(FastEmbedder(fast.DEFAULT_MODEL, threads=1).embed(["x"])) == 1


def test_a_model_that_is_not_listed_is_a_wrong_setting(library: type[TextEmbedding]) -> None:
    with pytest.raises(EmbedderError, match=r"'nobody/has-it'.*CLAWMARK_EMBEDDING_MODEL"):
        _ = FastEmbedder("nobody/has-it", threads=1).space


def test_a_library_that_cannot_be_imported_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(EmbedderDown, match="cannot be imported"):
        FastEmbedder(fast.DEFAULT_MODEL, threads=1).embed(["x"])


def test_a_query_embedder_never_downloads(library: type[TextEmbedding], tmp_path: Path) -> None:
    settings = Settings(embedder="fastembed", db_path=tmp_path / "memory.db")
    background = choose(settings, background=True)
    assert background is not None
    background.embed(["x"])
    for_prompts = of_space(settings, replace(background.space, probe="abc"), "")
    assert for_prompts is not None and for_prompts.space == background.space
    for_prompts.embed(["x"], "query")
    assert [made["local_files_only"] for made in library.made] == [False, True]
    assert {made["cache_dir"] for made in library.made} == {str(tmp_path / "models")}


def test_a_space_of_another_version_or_model_has_no_embedder_here(library: type[TextEmbedding]) -> None:
    def found(model: str) -> Any:
        return of_space(Settings(), Space(model, 3), "")

    assert isinstance(found(f"fastembed-0.9.1/{fast.DEFAULT_MODEL}"), FastEmbedder)
    assert found(f"fastembed-0.9.0/{fast.DEFAULT_MODEL}") is None
    assert found("fastembed-0.9.1/nobody/has-it") is None
    assert found("fastembed-0.9.1") is None


def test_the_setting_names_the_model_where_fastembed_is_asked_for(
    library: type[TextEmbedding], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "available", lambda: False)
    named: dict[str, Any] = {"embedding_model": "intfloat/multilingual-e5-large"}
    asked_for = choose(Settings(embedder="fastembed", **named), background=True)
    left_over = choose(Settings(**named), background=True)
    assert asked_for is not None and asked_for.name == "fastembed (intfloat/multilingual-e5-large)"
    assert left_over is not None and left_over.name == f"fastembed ({fast.DEFAULT_MODEL})"


@pytest.mark.skipif(find_spec("fastembed") is None, reason="the extra is not installed")
def test_the_real_library_lists_the_default_model_and_is_down_without_its_files(tmp_path: Path) -> None:
    embedder = FastEmbedder(fast.DEFAULT_MODEL, threads=1, cache=tmp_path, download=False)
    assert embedder.space.dimension == 384
    with pytest.raises(EmbedderDown, match="cannot be loaded"):
        embedder.embed(["x"])
