"""What is built, from which pinned module, with which flags: the one place that names the control plane's parts.

The versions themselves stand in `hack/tools/<family>/go.mod`, one module per family because one for all would force
their dependencies to agree.
"""

import hashlib
import platform
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / "tools"
FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_COMPONENT_BASE = "k8s.io/component-base/version"
_HELM_CHARTUTIL = "helm.sh/helm/v3/pkg/chartutil"


class ToolchainError(Exception):
    """A binary cannot be had; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class Binary:
    """A program to build: the file's name, its family under `hack/tools` and its Go package."""

    name: str
    family: str
    package: str


@dataclass(frozen=True, slots=True)
class Platform:
    """Go's names for an operating system and a processor, for example `linux` and `amd64`."""

    os: str
    arch: str


# In the order of building: the API server first, since the others share most of what it compiles.
BINARIES: dict[str, Binary] = {
    binary.name: binary
    for binary in (
        Binary("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
        Binary("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        Binary("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
        Binary("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
        Binary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        Binary("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        Binary("helm", "helm", "helm.sh/helm/v3/cmd/helm"),
    )
}

OTHERS: dict[str, Binary] = {
    binary.name: binary
    for binary in (
        # The last version whose programs are in the module itself, and not in modules that no proxy has.
        Binary("cert-manager", "cert-manager", "github.com/cert-manager/cert-manager/cmd/controller"),
    )
}
"""Programs that the control plane does not need: each is built for the tests of what we do beside it, into a folder of its own."""

_ALL = {**BINARIES, **OTHERS}

MODULES = {
    "cert-manager": "github.com/cert-manager/cert-manager",
    "kubernetes": "k8s.io/kubernetes",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kwok": "sigs.k8s.io/kwok",
    "helm": "helm.sh/helm/v3",
}


def binary(name: str) -> Binary:
    """Return the catalogue's entry; `ToolchainError` names the known ones."""
    try:
        return _ALL[name]
    except KeyError:
        raise ToolchainError(f"unknown binary {name!r}; known: {', '.join(_ALL)}") from None


def host_platform() -> Platform:
    """Return the platform that this machine runs; the binaries are run here, so they are built for nothing else."""
    machine = platform.machine().lower()
    if machine not in _ARCHITECTURES:
        raise ToolchainError(f"no local control plane for processor {machine!r}")
    return Platform(platform.system().lower(), _ARCHITECTURES[machine])


def version(family: str, tools: Path = TOOLS) -> str:
    """Return the version (`v1.2.3`) that the family's go.mod pins."""
    go_mod = tools / family / "go.mod"
    pinned = re.search(
        rf"^(?:require)?\s*{re.escape(MODULES[family])}\s+(v\S+)", go_mod.read_text("utf-8"), re.MULTILINE
    )
    if pinned is None:
        raise ToolchainError(f"{go_mod} does not require {MODULES[family]}")
    return pinned[1]


def ldflags(family: str, tools: Path = TOOLS) -> str:
    """Return the linker flags of a family: stripped, and stamped with the version.

    Without the stamp kubectl cannot read the server's version, and helm renders for a Kubernetes of years ago.
    """
    stamps: dict[str, str] = {}
    major, minor = version("kubernetes", tools).removeprefix("v").split(".")[:2]
    if family == "kubernetes":
        values = {
            "gitVersion": version(family, tools),
            "gitMajor": major,
            "gitMinor": minor,
            "gitTreeState": "clean",
        }
        stamps = {f"{_COMPONENT_BASE}.{name}": value for name, value in values.items()}
    elif family == "helm":
        stamps = {
            "helm.sh/helm/v3/internal/version.version": version(family, tools),
            f"{_HELM_CHARTUTIL}.k8sVersionMajor": major,
            f"{_HELM_CHARTUTIL}.k8sVersionMinor": minor,
        }
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])


def build_arguments(item: Binary, output: Path, tools: Path = TOOLS) -> Sequence[str]:
    """Return the arguments of `go` that build one binary into `output`."""
    return ["build", *FLAGS, "-ldflags", ldflags(item.family, tools), "-o", str(output), item.package]


def cache_key(target: Platform, tools: Path = TOOLS, *, items: Collection[Binary] = BINARIES.values()) -> str:
    """Return the name of the folder of these programs: it changes with every pinned version, flag, and with the platform."""
    digest = hashlib.sha256(f"{target.os}/{target.arch}\n".encode())
    for item in items:
        digest.update("\0".join([item.name, *build_arguments(item, Path(item.name), tools)]).encode())
    for family in sorted({item.family for item in items}):
        for name in ("go.mod", "go.sum"):
            digest.update((tools / family / name).read_bytes())
    return digest.hexdigest()[:16]
