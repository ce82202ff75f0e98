"""Long texts in large JSON: the same as read and written in one go, wherever they are cut."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.steps import finish
from kube import bigjson
from kube.bigjson import LONGEST_TEXT, Body, JsonError, Large, dumps, loads

UNITS = (
    *(
        "a",
        "u",
        "d83d",
        "é",
        "€",
        "😀",
        '\\"',
        "\\\\",
        "\\/",
        "\\n",
        "\\u0000",
        "\\u00e9",
        "\\uD7ff",
        "\\ue000",
    ),
    *("\\ud83d\\ude00", "\\uDBFF\\uDFFF"),
)
"""What a text is made of, as it is written: a text may be cut between any two of these, and nowhere else."""
WRONG = (
    *(b"\\", b"\\x", b"\\u", b"\\u12", b"\\u12g4", b"\\\xc3\xa9", b"\n", b"\0", b"\xff", b"\x80", b"\xc3"),
    *(b"\xe2\x82", b"\xf0\x9f\x98", b"\x80" * 5, b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b'"'),
    *(b"\\ud83d", b"\\ude00", b"\\ud83d\\u0041", b"\\ud83d\\n", b"\\ud83d\\ud83d\\ude00", b"\\ud83dx\\ude00"),
)
WRITTEN = st.lists(st.sampled_from(UNITS), max_size=60).map("".join)
SMALLEST, SMALL = 14, 40
"""Pieces that hold a pair of escapes at least; a text longer than the difference is cut at each of its places by one of them."""


def read(body: Body) -> Any:
    return finish(loads(body))


@contextmanager
def pieces_of(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bigjson, "WHOLE", 1)
        patch.setattr(bigjson, "PIECE", size)
        yield


LONGEST = b'"%b"' % (b"\\n" * (LONGEST_TEXT // 2 - 1))


@pytest.mark.parametrize("key", [False, True])
def test_a_text_up_to_the_limit_is_read_and_a_longer_one_is_not(key: bool) -> None:
    around = b"{%b:1}" if key else b"[%b]"
    assert read(around % LONGEST) == orjson.loads(around % LONGEST)
    for longer in (LONGEST[:-1] + b'x"', LONGEST[:-1] + b'\\""', LONGEST[:-1] + "é".encode() + b'"'):
        with pytest.raises(JsonError, match="at byte 41943"):
            read(around % longer)


@given(key=WRITTEN, value=WRITTEN, size=st.integers(SMALLEST, SMALL))
def test_texts_are_read_as_they_are_in_one_go_wherever_they_are_cut(key: str, value: str, size: int) -> None:
    for text in (f'["{value}", "{key}"]', f'{{"{key}" : "{value}", "{value}":"{key}"}}', f'"{value}"'):
        body = text.encode()
        with pieces_of(size):
            assert read(body) == read(bytearray(body)) == orjson.loads(body)


@pytest.mark.parametrize("unit", UNITS)
def test_no_text_is_cut_within_an_escape_or_a_character(unit: str) -> None:
    for size in range(SMALLEST, SMALL):
        for before in range(size + 1):
            body = f'["{"x" * before}{unit * 30}"]'.encode()
            with pieces_of(size):
                assert read(body) == orjson.loads(body)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_no_text_may_have_is_refused_wherever_it_is_cut(wrong: bytes) -> None:
    for before in range(50):
        for around in (b'["%b"]', b'{"%b":1}', b'["%b', b'"%b"'):
            for behind in (b"", b"y" * 50, "é".encode() * 25):
                body = around % (b"x" * before + wrong + behind)
                with pytest.raises(orjson.JSONDecodeError):
                    orjson.loads(body)
                with pieces_of(SMALLEST + before % 9), pytest.raises(JsonError, match="at byte"):
                    read(body)


@pytest.mark.parametrize("wrong", [b"\n", b"\\x", b"\\u12g4", b"\\ud83dx"])
def test_what_is_wrong_in_a_part_of_a_text_is_said_with_its_place_in_the_document(wrong: bytes) -> None:
    body = b'["%b%b"]' % (b"x" * 100, wrong)
    with pytest.raises(orjson.JSONDecodeError) as expected:
        orjson.loads(body)
    for size in range(SMALLEST, SMALL):
        with pieces_of(size), pytest.raises(JsonError, match=f"at byte {expected.value.pos}$"):
            read(body)


@given(text=st.text(), size=st.integers(SMALLEST, SMALL), deep=st.integers(0, 5))
def test_texts_are_written_as_they_are_in_one_go_wherever_they_are_cut(
    text: str, size: int, deep: int
) -> None:
    value: Any = [3 * text, {3 * text: text}]
    for _ in range(deep):
        value = {"a": [value]}
    body, large = orjson.dumps(value), Large()
    with pieces_of(size):
        assert b"".join(finish(dumps(finish(loads(body, large=large)), large))) == body
        assert b"".join(finish(dumps(value))) == body
