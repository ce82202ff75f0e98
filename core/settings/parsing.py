"""From what a person wrote to `Settings`: aliases, environment, forgiving values, then the strict model."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from core.settings import aliases, crossquota
from core.settings import environment as variables
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
    overlay, problems = variables.read(environment or {})
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
