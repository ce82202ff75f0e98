"""From what a person wrote to `Settings`: aliases, environment, forgiving values, then the strict model."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from core import strictjson
from core.settings import aliases, crossquota
from core.settings.model import Settings
from core.settings.values import WRITTEN
from core.spelling import nearest
from core.violations import show

_SECTIONS: Final = frozenset(field.serialization_alias for field in Settings.model_fields.values())
_MESSAGES: Final = {
    "model_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "too_short": "must not be empty",
    "invalid_key": "must be text",
}
_PREFIX: Final = "CARDQUOTA_"
_BETWEEN: Final = "__"
_Path = tuple[str, ...]


class SettingsError(ValueError):
    """The settings cannot be used; `problems` holds one line for each wrong key or value, `str()` all of them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def parse(document: object, environment: Mapping[str, str] | None = None) -> tuple[Settings, list[str]]:
    """The settings of a document (None or {} = all defaults), and lines to log.

    The document is what a YAML or JSON parser made of the file. Environment variables win over it. Raises
    SettingsError, which lists everything that is wrong, not only the first mistake.
    """
    if document is not None and not isinstance(document, dict):
        raise SettingsError([f"must be a mapping of sections, not {show(document)}"])
    overlay, problems = _overlay(environment or {})
    own, flat = aliases.split(document or {})
    problems += _contradictions(own, flat)
    merged = own
    for path, value in [(alias.path, alias.value) for alias in flat] + list(overlay.items()):
        merged = aliases.put(merged, path, value)
    settings, warnings = None, list[str]()
    try:
        settings, warnings = _validated(merged)
    except ValidationError as error:
        problems += [_line(detail) for detail in error.errors(include_url=False)]
    if problems or settings is None:
        raise SettingsError(problems)
    if aliases.IGNORED in (document or {}):
        warnings.append(f"{aliases.IGNORED}: has no effect")
    return settings, warnings


def render(settings: Settings) -> dict[str, Any]:
    """The settings as a complete document that `parse` reads back to an equal value."""
    return settings.model_dump(mode="json", by_alias=True)


def _validated(document: Mapping[Any, Any]) -> tuple[Settings, list[str]]:
    """Raises ValidationError. A section that is empty in the file (YAML null) is a section of defaults."""
    softened = {key: value for key, value in document.items() if value is not None or key not in _SECTIONS}
    warnings: list[str] = []
    if isinstance(softened.get("crossQuota"), dict):
        softened["crossQuota"], warnings = crossquota.soften(softened["crossQuota"])
    cards = softened.get("cards")
    if isinstance(cards, dict) and not isinstance(cards.get("unlimitedCpuMemory", False), bool):
        # Volcano reads everything that is not a boolean as false here.
        warnings.append(
            f"cards.unlimitedCpuMemory: {show(cards['unlimitedCpuMemory'])} is no boolean; false is used"
        )
        softened["cards"] = {**cards, "unlimitedCpuMemory": False}
    settings = Settings.model_validate(softened, by_alias=True, by_name=False, context=WRITTEN)
    if settings.mgpu.schedule_mode == "id":
        warnings.append("mgpu.scheduleMode: id acts like index")
    return settings, warnings


def _contradictions(own: Mapping[Any, Any], flat: list[aliases.Alias]) -> list[str]:
    """A line for each alias whose own key is set to something else; equal once read is equal."""
    return [
        f"{alias.key}: contradicts {'.'.join(alias.path)}, which is set as well"
        for alias in aliases.shared(own, flat)
        if not _same(own, aliases.put(own, alias.path, alias.value), alias.path[0])
    ]


def _same(one: Mapping[Any, Any], other: Mapping[Any, Any], section: str) -> bool:
    """Whether both documents mean the same in a section. What cannot be read differs unless it is the same text."""
    try:
        return _validated({section: one[section]})[0] == _validated({section: other[section]})[0]
    except ValidationError:
        return bool(one[section] == other[section])


def _line(detail: ErrorDetails) -> str:
    path = tuple(str(part) for part in detail["loc"] if part != "[key]")
    name = ".".join(path)
    if detail["type"] == "extra_forbidden":
        return f"{name}: is no setting{_suggestion(path)}"
    message = _MESSAGES.get(detail["type"]) or detail["msg"].removeprefix("Value error, ").replace(
        "Input should", "must", 1
    )
    return f"{name}: {message}, not {show(detail['input'])}"


def _suggestion(path: tuple[str, ...]) -> str:
    model: type[BaseModel] = Settings
    for part in path[:-1]:
        inner = next(
            (f.annotation for f in model.model_fields.values() if f.serialization_alias == part), None
        )
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return ""
        model = inner
    known = [field.serialization_alias or "" for field in model.model_fields.values()]
    near = nearest(path[-1], known)
    return f"; did you mean {near}?" if near else ""


def _keys() -> Iterator[tuple[_Path, FieldInfo]]:
    for section in Settings.model_fields.values():
        key = _key(section)
        inner = section.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            for field in inner.model_fields.values():
                yield (key, _key(field)), field
        else:
            yield (key,), section


def _key(field: FieldInfo) -> str:
    return field.serialization_alias or field.alias or ""


def _squashed(path: _Path) -> _Path:
    return tuple(part.replace("_", "").lower() for part in path)


_PATHS: Final[Mapping[_Path, tuple[_Path, FieldInfo]]] = {
    _squashed(path): (path, field) for path, field in _keys()
}


def _overlay(environment: Mapping[str, str]) -> tuple[dict[_Path, Any], list[str]]:
    """The values of `CARDQUOTA_<SECTION>__<KEY>` by path, and one line for each variable that names no setting.

    Section and key are written in capitals with or without underscores between words: `CARDQUOTA_CROSS_QUOTA__GUARD_BIND`.
    A variable without `__` that is no setting is not ours to judge: in a namespace with a Service called `cardquota`
    Kubernetes itself sets CARDQUOTA_SERVICE_HOST, CARDQUOTA_PORT and more.
    """
    values: dict[_Path, Any] = {}
    errors: list[str] = []
    for variable, text in sorted(environment.items()):
        if not variable.startswith(_PREFIX):
            continue
        parts = tuple(variable.removeprefix(_PREFIX).split(_BETWEEN))
        known = _PATHS.get(_squashed(parts))
        if known is not None:
            path, field = known
            values[path] = _value(text, field)
        elif len(parts) > 1:
            errors.append(f"{variable}: names no setting")
    return values, errors


def _value(text: str, field: FieldInfo) -> Any:
    """The text itself where the field holds text, else the JSON value where the text is one."""
    if field.annotation is str:
        return text
    try:
        return strictjson.loads(text)
    except strictjson.StrictJsonError:
        return text
