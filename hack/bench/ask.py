"""`python -m hack.bench.ask`: for each line `{"url": ..., "body": FILE or null, "times": N}` the seconds of each answer.

A process of its own, so that nothing of the asking is done by the loop that is asked.
"""

import ssl
import sys
import time
import urllib.request
from pathlib import Path

import orjson

_TIMEOUT_S = 60.0


def main() -> int:
    """Asks until the standard input is closed."""
    # The certificate was made by the very process that is asked, a moment ago.
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)
    )
    for line in sys.stdin:
        asked = orjson.loads(line)
        body = Path(asked["body"]).read_bytes() if asked["body"] else None
        taken: list[float] = []
        for _ in range(asked["times"]):
            request = urllib.request.Request(
                asked["url"], data=body, headers={"Content-Type": "application/json"}
            )
            started = time.monotonic()
            try:
                with opener.open(request, timeout=_TIMEOUT_S) as response:
                    response.read()
            except OSError as error:
                print(orjson.dumps({"problem": str(error)}).decode(), flush=True)
                break
            taken.append(time.monotonic() - started)
        else:
            print(orjson.dumps({"seconds": taken}).decode(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
