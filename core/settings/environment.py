"""`CARDQUOTA_<SECTION>__<KEY>` from the environment, laid over the document.

Section and key are written in capitals with or without underscores between words: `CARDQUOTA_CROSS_QUOTA__GUARD_BIND`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from core import strictjson
from core.settings.model import Settings

PREFIX: Final = "CARDQUOTA_"
_BETWEEN: Final = "__"

Path = tuple[str, ...]


def _keys() -> Iterator[tuple[Path, FieldInfo]]:
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


def _squashed(path: Path) -> Path:
    return tuple(part.replace("_", "").lower() for part in path)


_PATHS: Final[Mapping[Path, tuple[Path, FieldInfo]]] = {
    _squashed(path): (path, field) for path, field in _keys()
}


def read(environment: Mapping[str, str]) -> tuple[dict[Path, Any], list[str]]:
    """The values by path, and one line for each variable that names no setting.

    A variable without `__` that is no setting is not ours to judge: in a namespace with a Service called `cardquota`
    Kubernetes itself sets CARDQUOTA_SERVICE_HOST, CARDQUOTA_PORT and more.
    """
    values: dict[Path, Any] = {}
    errors: list[str] = []
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX):
            continue
        parts = tuple(variable.removeprefix(PREFIX).split(_BETWEEN))
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
