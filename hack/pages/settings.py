"""docs/settings.md, made from the model of the settings: `python -m hack.pages.settings` writes it."""

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from core.settings import Settings, model
from core.settings.aliases import EXACT, PREFIXES

PAGE: Final = Path(__file__).parents[2] / "docs" / "settings.md"

_INTRODUCTION: Final = """\
# Settings

[中文](zh/settings.md)

What both processes and the offline commands go by. They stand in the chart's values under the same names, which the chart
writes into the ConfigMap `cardquota` as one file, `cardquota.yaml`; `--config FILE` names another one. The file is YAML, hence
also JSON. A key that does not exist and a value that is not allowed are errors with their path, and no process starts on them;
in `crossQuota` a value that cannot be used is warned about, and the default is used, as Volcano's plugin has it.

A variable of the environment comes before the file: `CARDQUOTA_SECTION__KEY`, in capitals, such as
`CARDQUOTA_CARDS__PODS_WITHOUT_CARD_NAME=deny`; the chart's values do not set any. A duration is written with its unit: `90s`, `10m`, `1h30m`.

Where a key of Volcano's plugin configuration stands beside ours, that key is read as well, so that an existing configuration can
be pasted in. Both with different values is an error.

This page is made from [`core/settings/model.py`](../core/settings/model.py) by `python -m hack.pages.settings`; a test compares
the two. The values that are about the installation alone are in the [chart's README](../charts/cardquota/README.md#values).
"""
_HEAD: Final = ("| key | value | default | |", "|---|---|---|---|")


def page() -> str:
    """The whole page."""
    schema = Settings.model_json_schema(by_alias=True)
    defaults = Settings().model_dump(mode="json", by_alias=True)
    loose, parts = list[str](), [_INTRODUCTION]
    for field in _fields(Settings.__name__):
        node = schema["properties"][field.key]
        if "$ref" in node:
            parts.append("\n".join(_section(field, schema["$defs"], defaults[field.key])) + "\n")
        else:
            loose.append(field.row((), node, defaults[field.key], schema["$defs"]))
    return "\n".join([*parts, "## Keys of no section\n", *_HEAD, *loose, ""])


class Field:
    """One key as the source has it: its annotation, and what is said of it there."""

    def __init__(self, key: str, annotation: str, said: str) -> None:
        self.key, self.annotation, self.said = key, annotation, said

    def row(
        self, path: tuple[str, ...], node: Mapping[str, Any], default: Any, known: Mapping[str, Any]
    ) -> str:
        """A row of the table, `node` being what the schema says of the key."""
        also = ", ".join(f"`{key}`" for key in _flat_keys((*path, self.key)))
        said = f"{self.said} Volcano's key: {also}." if also else self.said
        shown = (
            "none" if default is None else f"`{default if isinstance(default, str) else json.dumps(default)}`"
        )
        return f"| `{self.key}` | {self._values(node, known)} | {shown} | {said} |"

    def _values(self, node: Mapping[str, Any], known: Mapping[str, Any]) -> str:
        for name, words in (("Seconds", "a duration"), ("Bytes", "bytes, or a quantity such as `64Mi`")):
            if name in self.annotation:
                return words
        if "Exact" in self.annotation:
            return "a mapping of names to numbers"
        node = next((one for one in node.get("anyOf", ()) if one.get("type") != "null"), node)
        return _words(node, known)


def _words(node: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    if "$ref" in node:
        made = known[node["$ref"].rpartition("/")[2]]["properties"]
        return "`{" + ", ".join(made) + "}`"
    if "enum" in node:
        return ", ".join(f"`{one}`" for one in node["enum"])
    match node["type"]:
        case "boolean":
            return "`true`, `false`"
        case "integer":
            most = f" to {node['maximum']}" if "maximum" in node else " or more"
            return f"{node.get('minimum', 0)}{most}"
        case "array":
            return f"a list of {_words(node['items'], known)}"
        case "object":
            inner = node.get("additionalProperties")
            return f"a mapping of names to {_words(inner, known)}" if isinstance(inner, dict) else "a mapping"
        case _:
            return "text"


def _section(field: Field, known: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    name = field.annotation
    yield f"## `{field.key}`"
    yield ""
    yield known[name]["description"]
    yield ""
    yield from _HEAD
    for one in _fields(name):
        yield one.row((field.key,), known[name]["properties"][one.key], defaults[one.key], known)


def _fields(name: str) -> Iterator[Field]:
    """The keys of a class of the model in their order, with the docstrings that stand below them."""
    tree = ast.parse(inspect.getsource(model))
    body = next(one.body for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    keys = {
        key: field.serialization_alias or field.alias
        for key, field in getattr(model, name).model_fields.items()
    }
    for number, one in enumerate(body):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            said = _docstring(body[number + 1]) if number + 1 < len(body) else ""
            yield Field(keys[one.target.id] or one.target.id, ast.unparse(one.annotation), said)


def _docstring(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return " ".join(str(statement.value.value).split())
    return ""


def _flat_keys(path: tuple[str, ...]) -> list[str]:
    whole = [key for key, meant in EXACT.items() if meant == path]
    return whole + [f"{prefix}NAME" for prefix, meant in PREFIXES.items() if meant == path]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
