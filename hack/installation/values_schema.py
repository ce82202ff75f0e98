"""Keeps the settings part of the chart's values.schema.json equal to the settings model.

`python -m hack.installation.values_schema` rewrites the file; a test fails while it differs from what would be written.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from core.settings import Settings

SCHEMA = Path(__file__).parents[2] / "charts" / "cardquota" / "values.schema.json"

# How pydantic names limits of a type that is read from text first, and what the standard calls them.
_LIMITS = {"ge": "minimum", "le": "maximum", "minLength": "minItems"}
_ANNOTATIONS = ("title", "description", "default", "format")
# Written as text, which the model's own schema does not show.
# A number without unit is no duration, and neither is one of nothing: some digit of it is not 0.
_DURATION = {
    "type": "string",
    "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
    "minLength": 2,
    "maxLength": 20,
    "not": {"pattern": "^[0hms]*$"},
}
# At least a KiB.
_KIB = "10(2[4-9]|[3-9][0-9])|1[1-9][0-9]{2}|[2-9][0-9]{3}|[1-9][0-9]{4,}"
_SIZE = {
    "type": "string",
    "pattern": f"^({_KIB}|[1-9][0-9]*[KMGTPE]i|[2-9]k|[1-9][0-9]+k|[1-9][0-9]*[MGTPE])$",
}
_DURATIONS = frozenset({"warnAfter", "evictAfter", "unfinishedAfter", "maxFreeGrace"})
# Rules that the model checks in code, by the section and the key.
_PRODUCT = "^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_OBJECT = f"{_LABEL}(\\.{_LABEL})*"
_RESOURCE = f"^{_OBJECT}/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
_NAMES: Mapping[str, Any] = {"items": {"type": "string", "pattern": "^\\S(.*\\S)?$"}}
_RULES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "cards": {
        "resources": {
            # Not `propertyNames`: Helm would name another value than the one that is wrong.
            "patternProperties": {_PRODUCT: {"type": "string", "pattern": _RESOURCE}},
            "additionalProperties": False,
        }
    },
    "mgpu": {"nodeAgents": _NAMES},
    "queue": {"default": {"pattern": f"^{_OBJECT}$", "maxLength": 253}},
    "gates": {"waitForUs": _NAMES},
    "volcano": {"schedulerNames": _NAMES},
}
# Without which templates would render something else than the default, or nothing that works: Helm takes away a key that is null.
# By the switch with which they are read. Not here is what may be missing: lists and maps, which are empty then, switches that are off
# anyway, and settings that the processes alone read, which have the default.
_ALWAYS = "uninstall"
NEEDED: Mapping[str, tuple[str, ...]] = {
    _ALWAYS: (
        "image.repository",
        "clusterDomain",
        "webhook.replicas",
        "webhook.logLevel",
        "webhook.timeoutSeconds",
        "webhook.pdb.enabled",
        "controller.replicas",
        "controller.logLevel",
        "controller.bindingHook.failurePolicy",
        "controller.bindingHook.timeoutSeconds",
        "controller.extender",
        "controller.answers.enabled",
        "controller.pdb.enabled",
        "policies.enabled",
        "uninstall.ungate",
        "crds",
        "volcano",
        "features.cards",
        "features.mgpu",
        "features.dra",
        "features.crossQuota",
        "features.extender",
        "cards",
    ),
    "webhook.pdb.enabled": ("webhook.pdb.minAvailable",),
    "controller.pdb.enabled": ("controller.pdb.minAvailable",),
    "controller.answers.enabled": ("controller.answers.port",),
    "uninstall.ungate": ("uninstall.podsPerSecond",),
    "policies.enabled": ("quota.maxFreeGrace",),
    "features.extender": (
        "controller.extender.port",
        "controller.extender.kubePort",
        "controller.extender.networkPolicy.enabled",
        "volcano.namespace",
    ),
}
_NAME = {"type": "string", "minLength": 1}
_RESOURCES = {"type": "array", "items": {"type": "string", "minLength": 1}}


def settings_sections() -> dict[str, Any]:
    """Return the schema of every top-level key of the settings file, without references."""
    model = Settings.model_json_schema(by_alias=True)
    sections: dict[str, Any] = {
        key: _plain(_resolved(schema, model["$defs"])) for key, schema in model["properties"].items()
    }
    for section in sections.values():
        properties = section.get("properties", {})
        for key in properties.keys() & _DURATIONS:
            properties[key] = _duration(properties[key])
        for key in properties.keys() & {"maxBodyBytes"}:
            properties[key] = {"anyOf": [properties[key], _SIZE]}
    for name, rules in _RULES.items():
        for key, rule in rules.items():
            sections[name]["properties"][key].update(rule)
    sections["schedulerNames"].update(_NAMES)
    # The values in settings sections that the chart itself uses.
    sections["cards"]["properties"]["resourcePrefixes"] = _RESOURCES
    sections["dra"]["properties"]["notDevices"] = _RESOURCES
    sections["volcano"]["properties"]["namespace"] = _NAME
    return sections


def updated(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values schema with its settings part taken from the model."""
    sections = settings_sections()
    # One section of values for the Deployment and for the settings.
    webhook = schema["properties"]["webhook"]
    sections["webhook"] = {
        **webhook,
        "properties": {**webhook["properties"], **sections["webhook"]["properties"]},
    }
    return {**schema, "properties": {**schema["properties"], **sections}, **_needed()}


def _needed() -> dict[str, Any]:
    """What has to be there. Without `uninstall` nothing: a template refuses the values of an earlier chart, and says the way out."""
    switched = [
        {"if": _holding({switch: {"const": True}}), "then": _there(paths)}
        for switch, paths in NEEDED.items()
        if switch != _ALWAYS
    ]
    return {"if": {"required": [_ALWAYS]}, "then": {**_there(NEEDED[_ALWAYS]), "allOf": switched}}


def _there(paths: Iterable[str]) -> dict[str, Any]:
    return _holding(dict.fromkeys(paths, True))


def _holding(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of objects in which every path of `wanted` is there and is as its schema says."""
    inner: dict[str, dict[str, Any]] = {}
    for path, schema in wanted.items():
        key, _, rest = path.partition(".")
        inner.setdefault(key, {})[rest] = schema
    return {
        "required": list(inner),
        "properties": {key: rests[""] if "" in rests else _holding(rests) for key, rests in inner.items()},
    }


def render(schema: Mapping[str, Any]) -> str:
    """Return the text of the file."""
    return json.dumps(schema, indent=2) + "\n"


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """With what its references name in their places; the model does not refer to itself."""
    if isinstance(schema, list):
        return [_resolved(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _resolved(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {key: _resolved(value, definitions) for key, value in schema.items()}


def _plain(schema: Any) -> Any:
    """Drop what only documents, and name limits as JSON Schema does; names of properties are left alone."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            plain[key] = {name: _plain(inner) for name, inner in value.items()}
        elif key not in _ANNOTATIONS:
            of_text = key == "minLength" and schema.get("type") != "array"
            plain[str(key) if of_text else _LIMITS.get(str(key), str(key))] = _plain(value)
    return plain


def _duration(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The text in place of the number that the model holds."""
    nullable = {"type": "null"} in schema.get("anyOf", ())
    return {"anyOf": [{"type": "null"}, _DURATION]} if nullable else dict(_DURATION)


def main() -> None:
    """Rewrite the file."""
    SCHEMA.write_text(render(updated(json.loads(SCHEMA.read_text("utf-8")))), "utf-8")


if __name__ == "__main__":
    main()
