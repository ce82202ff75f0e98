"""`make lock`: writes anew what goes into the image, with the hash of every file, from what pyproject.toml asks for.

The resolution holds for all platforms of the image, which no pip can do from one of them; so it is uv that is asked, from the
PATH. Nobody else needs it. That each platform has its files is tried by fetching them, with nothing of them run.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = "3.11"
LOCKS = {
    "hack/image/requirements.lock": "pyproject.toml",
    "hack/image/build.lock": "hack/image/build.in",
}

PLATFORMS = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
"""The image's, and how wheels call their machines."""

_TIMEOUT_S = 300.0
_LIBRARIES = ("manylinux_2_28", "manylinux2014", "manylinux_2_17", "manylinux_2_5")
"""Of the C library, what the image's base runs: Debian 12 has 2.36."""


def fetch(lock: str, platform: str, folder: Path) -> str:
    """Fetch the files of a lock file that an image of `platform` gets, by their hashes; what is wrong, empty when nothing is."""
    asked = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pinned = ["--require-hashes", "--only-binary=:all:", f"--requirement={lock}", f"--dest={folder}"]
    python = [f"--python-version={PYTHON}", "--implementation=cp"]
    target = [f"--platform={library}_{PLATFORMS[platform]}" for library in _LIBRARIES]
    done = subprocess.run(
        [*asked, *pinned, *python, *target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    return done.stderr.strip() if done.returncode else ""


def main() -> int:
    """Write both files; an exit status."""
    if (uv := shutil.which("uv")) is None:
        print("error: uv is not on the PATH; https://docs.astral.sh/uv says how to get it", file=sys.stderr)
        return 2
    for lock, source in LOCKS.items():
        asked = [uv, "pip", "compile", source, "--universal", f"--python-version={PYTHON}"]
        options = ["--generate-hashes", "--upgrade", "--quiet", "--custom-compile-command=make lock"]
        done = subprocess.run(
            [*asked, *options, f"--output-file={lock}"], cwd=ROOT, check=False, timeout=_TIMEOUT_S
        )
        if done.returncode:
            print(f"error: {lock} stays as it was", file=sys.stderr)
            return 1
        print(f"{lock} is written")
        for platform in PLATFORMS:
            with tempfile.TemporaryDirectory() as folder:
                if wrong := fetch(lock, platform, Path(folder)):
                    print(f"error: {platform} lacks files:\n{wrong}", file=sys.stderr)
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
