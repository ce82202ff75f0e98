"""The webhook entries of an installation: whom the API server calls, whether it trusts them, and since when it does call."""

from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

from hack.controlplane import WaitError, wait_for
from hack.controlplane.client import ApiClient
from hack.installation import substitution
from hack.installation.inventory import Inventory
from hack.installation.rendering import Object, of_kind

KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

_FREE_TIMEOUT_S = 10.0


class Entries:
    """Those of these rendered objects; what is stored of them goes through the inventory."""

    def __init__(self, api: ApiClient, objects: Sequence[Object], inventory: Inventory) -> None:
        self._api = api
        self._inventory = inventory
        self._rendered = [thing for kind in KINDS for thing in of_kind(objects, kind).values()]
        self._with_policies = bool(of_kind(objects, "ValidatingAdmissionPolicy"))

    @property
    def rendered(self) -> list[tuple[str, str]]:
        """Kind and name of each configuration."""
        return [(thing["kind"], thing["metadata"]["name"]) for thing in self._rendered]

    def wait_until_free(self) -> None:
        """Return once no other installation has these objects; one that is just ending takes a moment."""
        for thing in self._rendered:
            path = self._api.path_of(thing)
            try:
                wait_for(f"{path} is free", partial(self._is_free, path), _FREE_TIMEOUT_S)
            except WaitError:
                raise RuntimeError(f"another installation is in its place: {path} exists") from None

    def point_at(self, urls: Mapping[str, str]) -> None:
        """Have the API server call these addresses, by Service; what a leader has told it stays."""
        for configuration in self._rendered:
            stored = self._api.get(self._api.path_of(configuration))
            told = stored.body if stored.status == HTTPStatus.OK else {}
            self._inventory.apply(substitution.on_loopback(configuration, urls, told))

    def trusted(self) -> bool:
        """Return whether each entry has an authority and a path."""
        stored = [self._api.get(self._api.path_of(thing)).expect() for thing in self._rendered]
        clients = [w["clientConfig"] for c in stored for w in c.get("webhooks", ())]
        # The leader adds the path of the binding hook.
        return all("caBundle" in c and urlsplit(c["url"]).path for c in clients)

    def wait_until_enforced(self, *, webhook: bool) -> None:
        """Return once the API server acts on what it was given; its admission plugins notice a moment later."""
        if self._with_policies:
            probe = _probe({"cardquota.io/probe": ""})
            wait_for("the policies are in force", lambda: self._try(probe) == HTTPStatus.FORBIDDEN)
        if webhook:
            probe = _probe({"volcano.sh/card.name": "probe"})
            wait_for("the webhook is called", lambda: self._try(probe) < HTTPStatus.INTERNAL_SERVER_ERROR)

    def _is_free(self, path: str) -> bool:
        return self._api.get(path).status != HTTPStatus.OK

    def _try(self, pod: Object) -> int:
        path = self._api.path_of(pod, collection=True)
        return self._api.request("POST", f"{path}?dryRun=All", pod).status


def _probe(annotations: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "cardquota-probe", "namespace": "default", "annotations": dict(annotations)},
        "spec": {"containers": [{"name": "probe", "image": "probe"}]},
    }
