"""Large JSON in steps: the same values as read in one go, whatever the document, and never much in one piece."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.steps import finish
from kube import bigjson
from kube.bigjson import DEEPEST, LONGEST_TEXT, PIECE, WHOLE, JsonError, Large, dumps, let_go, loads

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


def in_each_step(of: Any, noted: list[int]) -> list[int]:
    """How much of what is noted there comes in each of the steps."""
    sums: list[int] = []
    while True:
        noted.clear()
        try:
            next(of)
        except StopIteration:
            return [*sums, sum(noted)]
        sums.append(sum(noted))


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of what orjson reads."""
    return noting(monkeypatch, "loads", len)


@pytest.fixture
def dumped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the texts that orjson writes, and the numbers of bytes for anything else."""
    written = orjson.dumps
    return noting(
        monkeypatch, "dumps", lambda value: len(value) if isinstance(value, str) else len(written(value))
    )


def noting(patch: pytest.MonkeyPatch, name: str, length: Callable[[Any], int]) -> list[int]:
    lengths: list[int] = []
    do = getattr(orjson, name)

    def noted(given: Any) -> Any:
        lengths.append(length(given))
        return do(given)

    patch.setattr(orjson, name, noted)
    return lengths


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


@pytest.mark.usefixtures("tiny")
def test_of_large_values_side_by_side_there_may_be_any_number() -> None:
    body = orjson.dumps([[["x" * 30], {"x" * 30: {"a": "x" * 30}}]] * 2 * DEEPEST)
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


def test_no_piece_of_a_large_document_is_large(loaded: list[int]) -> None:
    body = orjson.dumps({"Nodes": {"items": [NODE] * 1000}, "one": {"status": [NODE] * 1000}})
    assert len(body) > 3 * 2**20
    sums = in_each_step(loads(body), loaded)
    assert len(sums) > 2000
    assert max(sums) <= PIECE


ESCAPES = b'"%b"' % (b"\\n" * (LONGEST_TEXT // 2 - 1))
PAIRS = b'"%b"' % (b"\\ud83d\\ude00" * (2 * PIECE // 12))


@pytest.mark.parametrize(
    "body",
    [
        ESCAPES,
        b"[%b,%b]" % (ESCAPES, PAIRS),
        b"{%b:%b}" % (ESCAPES, ESCAPES),
        b'{"Nodes":{"items":[{"a":{%b:[%b]}}]}}' % (PAIRS, ESCAPES),
        b'{"%b":"%b","a":"%b","b":"%b","c":"%b"}' % ((b"x" * (PIECE - 2),) * 5),
    ],
    ids=["escapes", "a list", "key and value", "deep down", "key and value of a piece each"],
)
def test_no_step_of_reading_and_writing_long_texts_is_large(
    body: bytes, loaded: list[int], dumped: list[int]
) -> None:
    """One for each piece at least, and one between a key and its value."""
    large = Large()
    assert max(in_each_step(loads(body, large=large), loaded)) <= PIECE
    value = finish(loads(body, large=large))
    assert max(in_each_step(dumps(value, large), dumped)) <= PIECE
    assert max(map(len, finish(dumps(value, large)))) < 2 * WHOLE + PIECE


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
    assert 2000 < steps(dumps(answer)) < 3000
    assert max(map(len, finish(dumps(answer)))) < 2 * WHOLE


MANY = b"[" + b",".join([b"[" + b"1," * (PIECE // 4) + b"1]"] * 20) + b"]"
"""Lists that are read in one piece each, within one that is not."""


def test_of_what_is_sent_back_only_nodes_of_moderate_size_are_written_whole(dumped: list[int]) -> None:
    body, large = b'{"Nodes":{"items":[{"a":1},{"b":{"c":{"d":%b}}}]}}' % MANY, Large()
    question = finish(loads(body, large=large))
    answer = {"Nodes": {"items": list(question["Nodes"]["items"])}}
    assert max(in_each_step(dumps(answer, large), dumped)) <= PIECE
    assert b"".join(finish(dumps(answer, large))) == body


class Held(list[Any]):
    """A list whose end can be noticed."""

    def __init__(self, of: list[Any], freed: list[int]) -> None:
        super().__init__(of)
        self._freed = freed

    def __del__(self) -> None:
        self._freed.append(1)


@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each end of a list that was read in one piece."""
    parsed, ends = bigjson._parsed, list[int]()

    def held(*given: Any) -> Any:
        found = parsed(*given)
        return Held(found, ends) if isinstance(found, list) else found

    monkeypatch.setattr(bigjson, "_parsed", held)
    return ends


def test_what_is_let_go_is_taken_apart_as_it_was_read(freed: list[int]) -> None:
    large = Large()
    question = finish(loads(b'{"Pod":{},"Nodes":{"items":[{"a":{"b":{"c":%b}}}]}}' % MANY, large=large))
    items = question["Nodes"]["items"]
    sums = in_each_step(let_go(question, large), freed)
    assert (sum(sums), max(sums)) == (20, 1)
    assert question == {}
    assert items == []


def test_a_member_that_is_named_again_is_let_go_in_steps(freed: list[int]) -> None:
    body = b'{"a":%b,"b":2,"a":1}' % MANY
    sums = in_each_step(loads(body), freed)
    assert (sum(sums), max(sums)) == (20, 1)
    assert list(read(body).items()) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("body", [b"%b x", b"[%b x", b'{"a":[1,%b,{"b":x', b'[[%b],"x'])
def test_what_was_read_of_no_json_is_let_go_in_steps(body: bytes, freed: list[int]) -> None:
    def refused() -> Iterator[None]:
        try:
            yield from loads(body % MANY)
        except JsonError:
            return

    sums = in_each_step(refused(), freed)
    assert (sum(sums), max(sums)) == (20, 1)
