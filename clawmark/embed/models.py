"""What known embedding models want in front of a text.

Left out, a prefix costs recall without any sign of it: the vectors look fine. The table says what each model's card
says; a model that is not in it gets nothing. Pure.
"""

from __future__ import annotations

import re

_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
_REPRESENT = "Represent this sentence for searching relevant passages: "

_TABLE: tuple[tuple[str, str, str], ...] = (
    # (how a plain name begins or goes on behind a dash, query prefix, document prefix); the first that fits counts.
    # Source of each line: the model's card (README) at its publisher, as of 2026.
    # intfloat/multilingual-e5-large-instruct, e5-mistral-7b-instruct: "no need to add instruction for documents"
    (r"(multilingual-)?e5-[a-z0-9]+(-7b)?-instruct", f"{_INSTRUCT} ", ""),
    # intfloat/multilingual-e5-*, e5-*-v2, e5-*: both, for every language
    (r"(multilingual-)?e5-(small|base|large)", "query: ", "passage: "),
    # nomic-ai/nomic-embed-text-v1, -v1.5, -v2-moe: task prefixes are required
    (r"nomic-embed-text", "search_query: ", "search_document: "),
    # BAAI/bge-m3: no instruction
    (r"bge-m3", "", ""),
    # BAAI/bge-*-zh, -zh-v1.5: queries only
    (r"bge-(small|base|large)-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    # BAAI/bge-*-en, -en-v1.5 (also served without "-en"): queries only; v1.5 loses little without
    (r"bge-(small|base|large)", _REPRESENT, ""),
    # Alibaba-NLP/gte-Qwen2-*-instruct, gte-Qwen1.5-7B-instruct: queries only
    (r"gte-qwen[0-9.]*-[a-z0-9.]+-instruct", f"{_INSTRUCT} ", ""),
    # thenlper/gte-*, Alibaba-NLP/gte-*: none
    (r"gte-(small|tiny|base|large|multilingual|modernbert)", "", ""),
    # mixedbread-ai/mxbai-embed-large-v1: queries only
    (r"mxbai-embed-large", _REPRESENT, ""),
    # jinaai/jina-embeddings-v2-*: none
    (r"jina-embeddings-v2", "", ""),
    # jinaai/jina-embeddings-v3: what its code puts in front for the tasks retrieval.query and retrieval.passage
    (
        r"jina-embeddings-v3",
        "Represent the query for retrieving evidence documents: ",
        "Represent the document for retrieval: ",
    ),
    # jinaai/jina-embeddings-v4: by its prompt names
    (r"jina-embeddings-v4", "Query: ", "Passage: "),
    # Qwen/Qwen3-Embedding-*: queries only; its helper writes no blank behind "Query:"
    (r"qwen3-embedding", _INSTRUCT, ""),
    # google/embeddinggemma-300m: the prompts "Retrieval-query" and "Retrieval-document"
    (r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
    # Snowflake/snowflake-arctic-embed-*-v2.0 (also served as snowflake-arctic-embed2): queries only
    (r"snowflake-arctic-embed(2|-[a-z]+-v2)", "query: ", ""),
    # Snowflake/snowflake-arctic-embed-*, -m-v1.5: queries only
    (r"snowflake-arctic-embed", _REPRESENT, ""),
    # sentence-transformers/all-*, paraphrase-multilingual-*: none
    (r"(all|paraphrase-multilingual)-(minilm|mpnet)", "", ""),
)

_KNOWN = tuple((re.compile(rf"(?:^|-)(?:{begins})(?![a-z0-9])"), query, document) for begins, query, document in _TABLE)


def prefixes(model: str) -> tuple[str, str] | None:
    """(query prefix, document prefix) of a known model, whatever its server calls it; None for any other."""
    name = _plain(model)
    return next(((query, document) for known, query, document in _KNOWN if known.search(name)), None)


def _plain(model: str) -> str:
    """`hf.co/Org/Name_v1.GGUF:Q4_K_M` and `text-embedding-org-name-v1@q8` as `name-v1…`: one case, dashes, no tag."""
    name = re.split(r"[/\\]", model.strip().lower().rstrip("/\\"))[-1]
    name = re.split(r"[:@]", name)[0]
    return re.sub(r"[\s_]+", "-", name).removesuffix(".gguf").removeprefix("text-embedding-")
