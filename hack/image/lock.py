"""`make lock`: writes anew what goes into the image, with the hash of every file, from what pyproject.toml asks for.

The resolution holds for all platforms of the image, which no pip can do from one of them; so it is uv that is asked, from the
PATH. Nobody else needs it.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = "3.11"
LOCKS = {
    "hack/image/requirements.lock": "pyproject.toml",
    "hack/image/build.lock": "hack/image/build.in",
}

_TIMEOUT_S = 300.0


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
    return 0


if __name__ == "__main__":
    sys.exit(main())
