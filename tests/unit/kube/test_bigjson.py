"""Large JSON in steps: the same values as read in one go, whatever the document, and never much in one piece."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.steps import finish
from kube import bigjson
from kube.bigjson import PIECE, WHOLE, JsonError, dumps, let_go, loads

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40
)
NODE = {
    "metadata": {"name": 'n "quoted" \\', "labels": {"a/b": "ü [{"}},
    "status": {"images": [{"names": ["x" * 60], "sizeBytes": 1.5}] * 20},
}


def read(body: bytes) -> Any:
    return finish(loads(body))


def steps(of: Any) -> int:
    """In how many steps something is done."""
    number = 1
    try:
        while True:
            next(of)
            number += 1
    except StopIteration:
        return number


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything beyond a few bytes is large."""
    monkeypatch.setattr(bigjson, "WHOLE", 1)
    monkeypatch.setattr(bigjson, "PIECE", 24)


@pytest.mark.parametrize("spaces", [0, orjson.OPT_INDENT_2])
def test_a_large_document_is_read_as_it_is_in_one_go(spaces: int) -> None:
    body = orjson.dumps({"Pod": {}, "Nodes": {"items": [NODE] * 1000}, "NodeNames": None}, option=spaces)
    assert len(body) > WHOLE
    assert read(body) == orjson.loads(body)


@given(document=DOCUMENTS, indented=st.booleans())
def test_any_document_is_read_as_it_is_in_one_go(document: Any, indented: bool) -> None:
    body = orjson.dumps(document, option=orjson.OPT_INDENT_2 if indented else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bigjson, "WHOLE", 1)
        patch.setattr(bigjson, "PIECE", 24)
        assert repr(read(body)) == repr(orjson.loads(body))


@given(document=DOCUMENTS, place=st.integers(0), junk=st.binary(max_size=3))
def test_what_is_no_json_in_one_go_is_none_in_steps(document: Any, place: int, junk: bytes) -> None:
    """And what is read is the same: pieces that are put in or cut out do not make another document of it."""
    body = orjson.dumps(document)
    place %= len(body) + 1
    for broken in (body[:place] + junk + body[place:], body[:place]):
        try:
            expected = repr(orjson.loads(broken))
        except orjson.JSONDecodeError:
            expected = ""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bigjson, "WHOLE", 0)
            # No number is longer than a piece, three bytes of junk in it included.
            patch.setattr(bigjson, "PIECE", 32)
            try:
                assert repr(read(broken)) == expected
            except JsonError:
                assert not expected


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[1,2,3,4,5,6,7,8,9,10,11,12,]", "unexpected character"),
        (b"[1,2,3,4,5,6,7,8,9,10,11,12", "at byte 27"),
        (b'{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" "b":1}', "unexpected character"),
        (b'{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",1:1}', "unexpected character"),
        (b"[1,2,3,4,5,6,7,8,9,10,11,12]]", "at byte 28"),
        (b"[1,2,3,4,5,6,7,8,9,10,11,nul]", "at byte 28"),
        (b'[1,2,3,4,5,6,7,8,9,10,11,"\xff"]', "UTF-8"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(body: bytes, words: str) -> None:
    with pytest.raises(JsonError, match=words):
        read(body)


def test_no_piece_of_a_large_document_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    loaded = orjson.loads

    def noted(piece: memoryview) -> Any:
        sizes.append(len(piece))
        return loaded(piece)

    body = orjson.dumps({"Nodes": {"items": [NODE] * 1000}, "one": {"status": [NODE] * 1000}})
    monkeypatch.setattr(orjson, "loads", noted)
    assert len(body) > 3 * 2**20
    assert steps(loads(body)) > 2000
    assert max(sizes) <= PIECE


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[" * 2**20, "nested too deeply"),
        (b'{"a":' * 2**18, "nested too deeply"),
        (b"[" + b"{}," * 2**20 + b"1]", "too many values"),
        (b'["' + b"x" * 5 * 2**20 + b'"]', "unexpected"),
        (b'["' + b'\\"' * 2**22 + b'"]', "unexpected"),
        (b"[" + b" " * 2**20 + b"]", "unexpected"),
        (b"[" + b" " * PIECE + b'"' + b"y" * 4 * PIECE, "unexpected"),
    ],
)
def test_hostile_documents_cost_what_they_weigh_and_no_more(body: bytes, words: str) -> None:
    """Depth, texts, white space and numbers of values that no cluster has end the reading."""
    with pytest.raises(JsonError, match=words):
        read(body)


@given(document=DOCUMENTS)
def test_what_is_written_in_steps_is_what_is_written_in_one_go(document: Any) -> None:
    assert b"".join(finish(dumps(document))) == orjson.dumps(document)


def test_a_large_answer_is_written_node_by_node() -> None:
    answer = {"Nodes": {"items": [NODE] * 1000}, "FailedNodes": {"n": "x"}, "Error": ""}
    assert steps(dumps(answer)) > 2000
    assert max(map(len, finish(dumps(answer)))) < 2 * WHOLE


def test_what_is_let_go_is_taken_apart_node_by_node() -> None:
    question = {"Pod": {}, "Nodes": {"items": [dict(NODE) for _ in range(1000)]}}
    items = question["Nodes"]["items"]
    assert steps(let_go(question)) > 1000
    assert question == {}
    assert items == []
