"""Manifests and state files: streams of YAML or JSON documents in which every value knows its line, and the objects in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cli.errors import InputError

MAX_DEPTH = 200
"""Deeper nesting is refused: Kubernetes objects stay far below, the parsers' stacks far above."""
_NOTHING: Mapping[str, Any] = {}


class Place(NamedTuple):
    """Where an entry of a mapping (its key) or of a list begins, and the marks of what it holds."""

    line: int
    marks: "Marks"


@dataclass(frozen=True, slots=True)
class Marks:
    """The places of the entries of one value: by key in a mapping, by index in a list, none in a scalar."""

    children: Mapping[str | int, Place] = field(default_factory=dict)


LEAF = Marks()


class Duplicate(NamedTuple):
    """A key that occurs a second time in one mapping; the value read last counts."""

    line: int
    path: str


@dataclass(frozen=True, slots=True)
class Document:
    """One value of a stream, as the API server would get it from kubectl, and where everything in it stands."""

    source: str
    line: int
    value: Any
    marks: Marks
    duplicates: tuple[Duplicate, ...] = ()

    @property
    def place(self) -> Place:
        """The place of the whole value."""
        return Place(self.line, self.marks)

    def line_of(self, path: str) -> int:
        """The line of a field path such as `spec.containers[0].image` or `metadata.annotations[volcano.sh/card.name]`.

        What is missing has the line of the nearest thing around it that is there.
        """
        return line_of(self.place, path)


def line_of(place: Place, path: str) -> int:
    """The line of a field path below `place`, or of the nearest thing around it."""
    while path:
        step = _step(place.marks, path)
        if step is None:
            break
        place, path = step
    return place.line


def place_of(place: Place, *keys: str | int) -> Place:
    """The place of the entry under `keys`; the deepest one there is where the path ends early."""
    for key in keys:
        below = place.marks.children.get(key)
        if below is None:
            break
        place = below
    return place


def _step(marks: Marks, path: str) -> tuple[Place, str] | None:
    """The entry that the path starts with, and the rest of the path.

    The keys that exist decide where a name ends, for a key may have dots and brackets in it; the longest one counts.
    """
    best: tuple[Place, str] | None = None
    for key, place in marks.children.items():
        for written in (f"[{key}]", f".{key}", f"{key}"):
            rest = path.removeprefix(written)
            fits = rest != path and (not rest or rest[0] in ".[")
            if fits and (best is None or len(rest) < len(best[1])):
                best = place, rest
    return best


def join(path: str, key: str) -> str:
    """The path of the mapping entry `key`, in brackets when the key is not a plain field name."""
    if not key.isidentifier():
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def read(source: str, text: str) -> Iterator[Document]:
    """Every document of the stream that is not empty. Raises InputError at the first one that cannot be read.

    A text that starts like JSON is read as a stream of JSON values, and as YAML when it is none: YAML has braces too.
    """
    from cli import jsontext, yamltext

    start = text.lstrip()
    if not start.startswith(("{", "[")):
        yield from yamltext.read(source, text)
        return
    try:
        documents = list(jsontext.read(source, text))
    except InputError:
        if start[1:].lstrip().startswith('"') and not _has_yaml_breaks(text):
            raise
        documents = list(yamltext.read(source, text))
    yield from documents


def _has_yaml_breaks(text: str) -> bool:
    return "\n---" in text


class Found(NamedTuple):
    """One object with its API group and kind, or why what stands there is none."""

    place: Place
    raw: Mapping[str, Any] = _NOTHING
    group: str = ""
    kind: str = ""
    path: str = ""
    """The path of what the problem is about."""
    problem: str = ""


def objects(document: Document) -> Iterator[Found]:
    """Every object in the document, Lists of any kind unfolded, and every place where there should be one."""
    yield from _found(document.value, document.place)


def _found(value: object, place: Place) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield Found(place, problem="must be a Kubernetes object")
        return
    for key, example in (("apiVersion", "v1"), ("kind", "Pod")):
        if not isinstance(value.get(key), str) or not value[key]:
            yield Found(
                place_of(place, key), path=key, problem=f"{key} must be set, for instance to {example}"
            )
            return
    if value["kind"].endswith("List") and "items" in value:
        yield from _unfolded(value, place)
    else:
        yield Found(place, value, value["apiVersion"].rpartition("/")[0], value["kind"])


def _unfolded(outer: dict[str, Any], place: Place) -> Iterator[Found]:
    """The items of a list. Those of a typed one, such as a PodList, need not repeat apiVersion and kind."""
    items = outer["items"]
    if items is not None and not isinstance(items, list):
        yield Found(place_of(place, "items"), path="items", problem="items must be a list")
        return
    kind = outer["kind"].removesuffix("List")
    for index, item in enumerate(items or ()):
        if kind and isinstance(item, dict):
            item = {"apiVersion": outer["apiVersion"], "kind": kind, **item}  # noqa: PLW2901 - the item as it is meant
        yield from _found(item, place_of(place, "items", index))
