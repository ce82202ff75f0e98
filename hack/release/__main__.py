"""`make release`: everything of a version but its image in `dist/`, with checksums; refused where versions or changelog disagree."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hack.release.versions import ROOT, problems, project_version
from hack.toolchain import Store, ToolchainError, to_stream

SUMS = "SHA256SUMS"
_LOCK = "hack/image/requirements.lock"
_TIMEOUT_S = 300.0


class ReleaseError(Exception):
    """A step failed; the message is what it said."""


def build(target: Path, root: Path = ROOT) -> list[Path]:
    """Fill a folder with wheel, chart, lock file and checksums of the last commit, and return the files.

    Raises ReleaseError, ToolchainError.
    """
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="cardquota-release-") as folder:
        # Nothing that only lies around here; and setuptools leaves its own beside the sources.
        tree = Path(folder) / "tree"
        _run("git", "clone", "--quiet", "--shared", "--no-tags", str(root), str(tree), root=root)
        _fill(target, tree)
    files = sorted(target.iterdir())
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (target / SUMS).write_text("".join(lines), "utf-8")
    return [*files, target / SUMS]


def _fill(target: Path, tree: Path) -> None:
    # What is the same gets the same bytes, whenever it is built.
    epoch = _run("git", "log", "-1", "--format=%ct", root=tree).strip()
    (tree / "cli" / "commit").write_text(_run("git", "rev-parse", "HEAD", root=tree).strip(), "utf-8")
    pip = (sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--quiet", "--no-deps")
    _run(*pip, f"--wheel-dir={target}", ".", root=tree, epoch=epoch)
    helm = Store().ensure(["helm"], to_stream())["helm"]
    _run(str(helm), "package", "charts/cardquota", f"--destination={target}", root=tree, epoch=epoch)
    shutil.copy(tree / _LOCK, target / f"cardquota-{project_version(tree)}-requirements.lock")


def _run(*command: str, root: Path, epoch: str = "") -> str:
    environment = {**os.environ, **({"SOURCE_DATE_EPOCH": epoch} if epoch else {})}
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, env=environment
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    """Look whether it may be released, and build it; an exit status."""
    parser = argparse.ArgumentParser(prog="python -m hack.release", description=__doc__)
    parser.add_argument(
        "--dry-run", action="store_true", help="build in spite of what is wrong, to see whether it builds"
    )
    options = parser.parse_args(arguments)
    found = problems()
    try:
        if _run("git", "status", "--porcelain", root=ROOT).strip():
            found.append("the tree has changes that are in no commit: commit them")
        for line in found:
            print(f"{'warning' if options.dry_run else 'error'}: {line}", file=sys.stderr)
        if found and not options.dry_run:
            return 1
        files = build(ROOT / "dist")
    except (ReleaseError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for file in files:
        print(file.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
