"""Streams of YAML and JSON: what values they hold, where everything stands, and what is refused."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli import documents
from cli.errors import InputError


def values(text: str) -> list[Any]:
    return [document.value for document in documents.read("f", text)]


def value(text: str) -> Any:
    (found,) = values(text)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", True),
        ("On", True),
        ("y", True),
        ("n", False),
        ("OFF", False),
        ("'yes'", "yes"),
        ("yEs", "yEs"),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("-0b11", -3),
        ("08", 8),
        ("1_000", 1000),
        ("+5", 5),
        ("1e3", 1000),
        ("2.0", 2),
        ("1.5", 1.5),
        ("1:30", "1:30"),
        ("1.2.3", "1.2.3"),
        ("-", [None]),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("!!int '7'", 7),
        ("!!float 2", 2),
        ("!!binary aGk=", "hi"),
        ("é😀", "é😀"),
        ("1: a", {"1": "a"}),
        ("yes: a", {"true": "a"}),
        ("- a\n-\n- ~", ["a", None, None]),
    ],
)
def test_plain_scalars_mean_what_they_mean_to_kubectl(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: .inf", 1, "no JSON number"),
        ("a:\n- .NaN", 2, "no JSON number"),
        ("a: 1e999", 1, "too large"),
        ("a: " + "9" * 5000, 1, "5000 digits"),
        ("a: !foo 1", 1, "!foo"),
        ("a: !!int x", 1, "cannot be read"),
        ("a: !!binary a", 1, "binary"),
        ("a: 1\nb: *x", 2, "&x"),
        ("a: &x [*x]", 1, "&x"),
        ("a:\n  b: 1\n c: 2", 3, "YAML"),
        ("a: b: c", 1, "YAML"),
        ("\ta: 1", 1, "YAML"),
        ("a: 1\nb: \x01", 2, "YAML"),
        ("? [a]\n: b", 1, "key"),
        ("~: b", 1, "key"),
        ("a: {<<: 3}", 1, "<<"),
        ("[" * 100_000, 1, "nest"),  # by us, or before that by a newer libyaml in words of its own
        ("- " * 100_000, 1, "nested"),
        ('{"a": ' * 100_000, 1, "nested"),
        ('{"a": 1,\n}', 2, "JSON"),
        ('{"a": 1\n "b": 2}', 2, "JSON"),
        ('{"a"', 1, "JSON"),
        ('{"a": tru}', 1, "JSON"),
        ('{"a": NaN}', 1, "NaN"),
        ('{"a": "\n"}', 1, "JSON"),
        ('{"a": 1}\n{"b": 2', 2, "JSON"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        list(documents.read("f", text))
    assert caught.value.line == line
    assert str(caught.value).startswith(f"f:{line}: ")


def test_a_file_cannot_blow_itself_up_with_aliases() -> None:
    bomb = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    bomb += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(InputError, match="aliases"):
        list(documents.read("f", "\n".join(bomb)))


def test_documents_before_a_broken_one_are_read() -> None:
    stream = documents.read("f", "a: 1\n---\nb: [")
    assert next(stream).value == {"a": 1}
    with pytest.raises(InputError):
        next(stream)


@pytest.mark.parametrize("text", ["", "\n\n", "---\n---\n", "# only a comment\n", "null", "~"])
def test_empty_documents_are_none(text: str) -> None:
    assert values(text) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}\n{"a": 2}',
        '{"a": 1}{"a": 2}',
        "a: 1\n---\na: 2\n...",
        '{"a": 1}\n---\n{"a": 2}',
        "{a: 1}\n---\n{a: 2}",
        '\t{\t"a":\t1}\n{"a":2}',
    ],
)
def test_yaml_and_json_come_in_streams(text: str) -> None:
    assert values(text) == [{"a": 1}, {"a": 2}]


def test_json_escapes_beyond_the_basic_plane_are_read() -> None:
    assert value(json.dumps({"a": "😀/"})) == {"a": "😀/"}


def test_merge_keys_and_anchors_are_resolved() -> None:
    text = "base: &b {x: 1, w: 2}\nmore: &m {w: 3, z: 4}\nall: {<<: [*b, *m], x: 9}\none: {<<: *b}\nquoted: {'<<': 1}"
    found = value(text)
    assert found["all"] == {"x": 9, "w": 2, "z": 4}
    assert found["one"] == {"x": 1, "w": 2}
    assert found["quoted"] == {"<<": 1}


MANIFEST = """\
# a comment
metadata:
  annotations:
    volcano.sh/card.name: A
    a: x
    a.b: y
spec:
  containers:
  - name: c1
  - name: c2
    resources:
      limits: {cpu: 1,
        vke.volcengine.com/mgpu-core: 30}
"""
PATHS = [
    ("metadata", 2),
    ("metadata.annotations[volcano.sh/card.name]", 4),
    ("metadata.annotations[a]", 5),
    ("metadata.annotations[a.b]", 6),
    ("spec.containers[0].name", 9),
    ("spec.containers[1]", 10),
    ("spec.containers[1].name", 10),
    ("spec.containers[1].resources.limits[cpu]", 12),
    ("spec.containers[1].resources.limits[vke.volcengine.com/mgpu-core]", 13),
]
NEAREST = [
    ("", 2),
    ("status.phase", 2),
    ("metadata.labels[x]", 2),
    ("metadata.annotations[nope]", 3),
    ("spec.containers[7].name", 8),
    ("spec.containers[1].resources.requests[cpu]", 11),
    ("(the object)", 2),
    ("][", 2),
]


@pytest.mark.parametrize(("path", "line"), PATHS + NEAREST)
def test_a_field_path_leads_to_its_line_or_the_nearest_one(path: str, line: int) -> None:
    (document,) = documents.read("f", MANIFEST)
    assert document.line_of(path) == line


def test_a_key_with_brackets_in_it_is_found_before_a_shorter_one() -> None:
    (document,) = documents.read("f", "a:\n  x: {y: 1}\n  'x][y': 2\n")
    assert document.line_of("a[x][y]") == 3
    assert document.line_of("a.x.y") == 2


def test_json_has_lines_too() -> None:
    text = json.dumps(yaml.safe_load(MANIFEST), indent=2)
    (document,) = documents.read("f", text)
    lines = text.splitlines()
    for path, _ in PATHS:
        line = lines[document.line_of(path) - 1]
        last = path.replace("]", "").replace("[", ".").split(".")[-1]
        assert last in line or line.strip() == "{", path


def test_lines_go_on_counting_in_later_documents() -> None:
    _, second = documents.read("f", "a: 1\n---\n\nb:\n- c: 1\n")
    assert (second.line, second.line_of("b[0].c")) == (4, 5)
    _, second = documents.read("f", '{"a": 1}\n\n{"b":\n[{"c": 1}]}')
    assert (second.line, second.line_of("b"), second.line_of("b[0].c")) == (3, 3, 4)


@pytest.mark.parametrize(
    "text",
    ["a:\n  b.c/d: 1\n  b.c/d: 2\nx: 1\nx: 2\n", '{"a":\n{"b.c/d": 1,\n"b.c/d": 2},\n"x": 1,\n"x": 2}'],
)
def test_every_duplicate_key_is_found(text: str) -> None:
    (document,) = documents.read("f", text)
    assert [duplicate.path for duplicate in document.duplicates] == ["a[b.c/d]", "x"]
    assert [duplicate.line for duplicate in document.duplicates] == [3, 5]
    assert document.value == {"a": {"b.c/d": 2}, "x": 2}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.text(max_size=5), json_values, max_size=3),
    st.booleans(),
    st.sampled_from([None, 1, "\t"]),
)
def test_json_reads_back_as_the_standard_library_reads_it(
    original: dict[str, Any], ascii_only: bool, indent: int | str | None
) -> None:
    text = json.dumps(original, ensure_ascii=ascii_only, indent=indent)
    (document,) = documents.read("f", text)
    assert document.value == original
    assert document.duplicates == ()


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), json_values, max_size=3))
def test_what_a_yaml_writer_wrote_reads_back(original: dict[str, Any]) -> None:
    # Quoted and tagged: PyYAML leaves `y` and `1e3` bare, which kubectl reads as a boolean and a number.
    text = yaml.safe_dump(original, default_style='"')
    if original:
        # Numbers: 2.0 and 2 are one number in JSON.
        assert value(text) == original


@given(st.text())
def test_rubbish_is_refused_or_read_but_never_crashes(text: str) -> None:
    try:
        list(documents.read("f", text))
    except InputError as error:
        assert str(error).startswith("f:")  # noqa: PT017 - either outcome is right


@given(st.text("{}[]:,-'\"&*!|>% \n\tab1~<", max_size=60))
def test_rubbish_made_of_signs_never_crashes(text: str) -> None:
    try:
        list(documents.read("f", text))
    except InputError as error:
        assert str(error).startswith("f:")  # noqa: PT017 - either outcome is right
