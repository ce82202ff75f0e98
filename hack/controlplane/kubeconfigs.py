"""Kubeconfig files for whoever talks to the control plane, each readable by its owner alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from hack.controlplane.credentials import Credentials, write_private


class Kubeconfigs:
    """Writes kubeconfigs for one API server into `folder`, one per user; the same user's file is replaced."""

    def __init__(self, folder: Path, server: str, credentials: Credentials) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self._server = server
        self._credentials = credentials

    def for_account(self, account: str) -> Path:
        """Return the kubeconfig of one of `credentials.ACCOUNTS`."""
        return self.for_token(account, self._credentials.tokens[account])

    def for_token(self, user: str, token: str, namespace: str = "default") -> Path:
        """Return a kubeconfig with a bearer token."""
        return self._write(user, {"token": token}, namespace)

    def for_user(self, user: str, groups: Sequence[str]) -> Path:
        """Return a kubeconfig with a client certificate for any user."""
        certificate, key = self._credentials.client_pair(user, groups)
        files = {
            "client-certificate": write_private(self._file(user, "crt"), certificate),
            "client-key": write_private(self._file(user, "key"), key),
        }
        return self._write(user, {field: str(path) for field, path in files.items()}, "default")

    def _file(self, user: str, suffix: str) -> Path:
        return self._folder / f"{quote(user, safe='')}.{suffix}"

    def _write(self, user: str, identity: Mapping[str, str], namespace: str) -> Path:
        cluster = {"server": self._server, "certificate-authority": str(self._credentials.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "local",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": user, "user": identity}],
            "contexts": [
                {"name": "local", "context": {"cluster": "local", "user": user, "namespace": namespace}}
            ],
        }
        # JSON is YAML, so every client reads it.
        return write_private(self._file(user, "yaml"), json.dumps(config, indent=2).encode())
