"""What an installation put on the API server, so that exactly that can be removed again."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from hack.controlplane import ApiClient, wait_for

FIELD_MANAGER = "hack"

_GONE_TIMEOUT_S = 60.0

Object = Mapping[str, Any]


class Inventory:
    """Applies objects and remembers, newest last, those that were not there before.

    As with helm, what is annotated to be kept stays; those are the CRDs. (An API server also takes minutes to delete a
    CRD that it has only just begun to serve.)
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._created: list[str] = []

    def apply(self, thing: Object) -> None:
        """Server-side apply an object; a namespace or a CustomResourceDefinition can be used when this returns."""
        path = self._api.path_of(thing)
        self._wait_unless_terminating(path)
        answer = self._api.patch(path, thing, "apply", fieldManager=FIELD_MANAGER, force="true")
        answer.expect()
        if answer.status == HTTPStatus.CREATED and not _is_kept(thing):
            self._created.append(path)
        if thing["kind"] == "CustomResourceDefinition":
            wait_for(f"{path} is served", lambda: self._is_established(path))

    def remove(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Delete what was created here, newest first, where `wanted` says so of its path.

        Only deletion is asked for; a namespace takes a moment to go.
        """
        for path in [path for path in reversed(self._created) if wanted(path)]:
            self._api.delete(path, propagationPolicy="Background").expect(200, 202, 404)
            self._created.remove(path)

    def _wait_unless_terminating(self, path: str) -> None:
        """An earlier installation may still be on its way out."""

        def settled() -> bool:
            found = self._api.get(path)
            return found.status != HTTPStatus.OK or "deletionTimestamp" not in found.body["metadata"]

        wait_for(f"the {path} of before is gone", settled, _GONE_TIMEOUT_S)

    def _is_established(self, path: str) -> bool:
        conditions = self._api.get(path).expect().get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _is_kept(thing: Object) -> bool:
    return bool(thing["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep")
