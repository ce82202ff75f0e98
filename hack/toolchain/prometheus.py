"""Prometheus and its `promtool`, for the tests of alerts, dashboards and reports, which are skipped without.

They come from the folder that `PROMETHEUS_ASSETS` names, from the PATH, or from Debian's package, which is unpacked into the cache
and not installed: nothing is started, and nobody has to be root. Where that package cannot be had, one line says why.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hack.toolchain.store import cache_root

PROGRAMS = ("prometheus", "promtool")
MISSING = (
    "there is no {} in PROMETHEUS_ASSETS, on the PATH or in the cache; `python -m hack.toolchain` fetches it"
)

_PACKAGE = "prometheus"
_TIMEOUT_S = 180.0
_PATIENCE = ("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20")


def find(name: str, environ: Mapping[str, str] | None = None) -> Path | None:
    """Return one of `PROGRAMS`, None where it is nowhere."""
    environ = os.environ if environ is None else environ
    places = (environ.get("PROMETHEUS_ASSETS", ""), environ.get("PATH", ""), str(_folder(environ)))
    found = shutil.which(name, path=os.pathsep.join(filter(None, places)))
    return None if found is None else Path(found)


def fetch(say: Callable[[str], None], environ: Mapping[str, str] | None = None) -> bool:
    """Unpack Debian's package into the cache unless the programs are there; False, and a word why, where that cannot be done."""
    environ = dict(os.environ if environ is None else environ)
    if all(find(name, environ) for name in PROGRAMS):
        return True
    why = _fetched(environ)
    say(
        f"prometheus: {'not to be had, tests that need it are skipped: ' if why else 'unpacked into '}{why or _folder(environ)}"
    )
    return not why


def _folder(environ: Mapping[str, str]) -> Path:
    return cache_root(environ) / "prometheus"


def _fetched(environ: Mapping[str, str]) -> str:
    """Why the package is not in the cache now; empty when it is."""
    path = environ.get("PATH", "")
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name, path=path) is None]
    if missing:
        return f"this system has no {missing[0]}; install Prometheus, or name its folder in PROMETHEUS_ASSETS"
    target = _folder(environ)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = Path(scratch)
        download = ("apt-get", *_PATIENCE, "download", _PACKAGE)
        why = _run(download, folder, environ)
        if why and os.geteuid() == 0:
            # A fresh machine has no lists of packages.
            why = _run(("apt-get", *_PATIENCE, "update"), folder, environ) or _run(download, folder, environ)
        if why:
            return why
        package = next(folder.glob("*.deb"), None)
        if package is None:
            return "apt-get has downloaded nothing"
        why = _run(("dpkg-deb", "-x", str(package), str(folder / "tree")), folder, environ)
        if why:
            return why
        absent = [name for name in PROGRAMS if not (folder / "tree/usr/bin" / name).is_file()]
        if absent:
            return f"{package.name} has no {absent[0]}"
        try:
            (folder / "tree/usr/bin").rename(target)
        except OSError as error:
            # Somebody else may have been faster.
            return "" if all(find(name, environ) for name in PROGRAMS) else str(error)
    return ""


def _run(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    """Run it in a folder; returns the last line of its complaint, empty when it has none."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} gave no answer within {_TIMEOUT_S:.0f} s"
    if done.returncode == 0:
        return ""
    last = (done.stderr.strip() or "it says nothing").splitlines()[-1]
    return f"{command[0]} failed ({done.returncode}): {last}"
