"""`make image`: builds the Containerfile with whatever can build one here."""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

from hack.release.versions import ROOT, chart_version

BUILDERS: dict[str, Sequence[str]] = {
    # The first word that finds a working one: docker's client alone builds nothing.
    "docker": ("docker", "version", "--format", "{{.Server.Version}}"),
    "podman": ("podman", "info"),
    "buildah": ("buildah", "info"),
}
_PROBE_TIMEOUT_S = 30.0

Works = Callable[[Sequence[str]], bool]


class NoBuilderError(Exception):
    """Nothing here builds images; the message says what was looked for."""


def works(command: Sequence[str]) -> bool:
    """Whether a command is there and ends well."""
    if shutil.which(command[0]) is None:
        return False
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_PROBE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def builder(wanted: str = "", ask: Works = works) -> str:
    """Return the builder to use, `wanted` or the first that works. Raises NoBuilderError."""
    names = [wanted] if wanted else [*BUILDERS]
    for name in names:
        if ask(BUILDERS[name]):
            return name
    raise NoBuilderError(
        f"no image can be built here: {', '.join(names)} {'is' if len(names) == 1 else 'are'} missing, or has no engine "
        "that answers. The image's steps can be tried without: make test ARGS=tests/unit/hack/test_image.py"
    )


def command(name: str, image: str, *, base: str, platforms: str, commit: str, epoch: str) -> list[str]:
    """Return the command line that builds `image`; empty `base` and `platforms` leave the builder its own."""
    verb = {"docker": ["docker", "build"], "podman": ["podman", "build"], "buildah": ["buildah", "build"]}[
        name
    ]
    arguments = {"BASE": base, "COMMIT": commit, "SOURCE_DATE_EPOCH": epoch}
    target = ["--manifest" if platforms and name != "docker" else "--tag", image]
    return [
        *verb,
        "--file=Containerfile",
        *(f"--build-arg={key}={value}" for key, value in arguments.items() if value),
        *([f"--platform={platforms}"] if platforms else []),
        *target,
        ".",
    ]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def main(arguments: list[str] | None = None) -> int:
    """Build it, and say its name; an exit status."""
    parser = argparse.ArgumentParser(prog="python -m hack.image", description=__doc__)
    parser.add_argument(
        "--image", default=f"cardquota:{chart_version()}", help="name and tag (default %(default)s)"
    )
    parser.add_argument("--builder", default="", choices=["", *BUILDERS])
    parser.add_argument(
        "--base", default="", help="the Python image that it is built on, by digest if it is to be shipped"
    )
    parser.add_argument(
        "--platforms", default="", help="for example linux/amd64,linux/arm64; this machine's by default"
    )
    options = parser.parse_args(arguments)
    try:
        chosen = builder(options.builder)
    except NoBuilderError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    dirty = "-dirty" if _git("status", "--porcelain") else ""
    line = command(
        chosen,
        options.image,
        base=options.base,
        platforms=options.platforms,
        commit=(commit + dirty) if (commit := _git("rev-parse", "HEAD")) else "",
        epoch=_git("log", "-1", "--format=%ct"),
    )
    print(f"==> {' '.join(line)}", flush=True)
    return subprocess.run(line, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
