"""Makes the virtual environment that every other command runs in. Standard library only: it runs before any install."""

import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path

MINIMUM = (3, 11)

_HEARTBEAT_S = 10.0


def main(folder: str) -> int:
    """Creates or completes the environment in `folder`; returns an exit status."""
    if sys.version_info < MINIMUM:
        found = ".".join(str(part) for part in sys.version_info[:3])
        wanted = ".".join(str(part) for part in MINIMUM)
        print(f"error: Python {wanted} or newer is needed, {sys.executable} is {found}", file=sys.stderr)
        print("       name another one with `make PYTHON=/path/to/python3 ...`", file=sys.stderr)
        return 2
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        print(f"==> creating a virtual environment in {folder}", flush=True)
        try:
            venv.EnvBuilder(with_pip=True).create(folder)
        except subprocess.CalledProcessError:
            print("error: this Python has no `ensurepip`; install it (Debian: python3-venv)", file=sys.stderr)
            return 2
    print("==> installing dependencies", flush=True)
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    # Dependency groups need a newer pip than Python 3.11 brings along.
    for arguments in (["--upgrade", "pip>=25.1"], ["--editable", ".", "--group", "dev"]):
        status = _run([*pip, *arguments])
        if status:
            print("error: installing the dependencies failed, see above", file=sys.stderr)
            return status
    return 0


def _run(command: Sequence[str]) -> int:
    """Runs a command; says every now and then that it is at work, and shows its output only when it fails."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while (status := _wait(process)) is None:
            print(f"    still installing, {time.monotonic() - started:.0f} s", flush=True)
        if status:
            output.seek(0)
            sys.stderr.buffer.write(output.read())
            sys.stderr.flush()
    return status


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status, or None after a while; an interrupted command has ended when this raises."""
    try:
        return process.wait(_HEARTBEAT_S)
    except subprocess.TimeoutExpired:
        return None
    except KeyboardInterrupt:
        process.wait()
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
