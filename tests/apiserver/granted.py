"""Rights that were given a moment ago: the API server goes by a binding only once its own watch has shown it."""

from contextlib import closing
from http import HTTPStatus
from pathlib import Path

from hack.controlplane import ApiClient, ControlPlane, wait_for


def wait_granted(api: ApiClient, *paths: str) -> None:
    """Returns once whose client this is may read all of these paths, whether there is anything or not."""

    def may_read() -> bool:
        return all(api.get(path).status != HTTPStatus.FORBIDDEN for path in paths)

    wait_for("the API server goes by the new bindings", may_read)


def wait_granted_to(plane: ControlPlane, kubeconfig: Path, *paths: str) -> None:
    """The same for the user of a kubeconfig."""
    with closing(plane.client(kubeconfig)) as api:
        wait_granted(api, *paths)
