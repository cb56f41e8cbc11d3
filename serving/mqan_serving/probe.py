"""Ask the server of this container whether it is ready: what the image's health check runs (``python -m``).

It reads the same variables as the server, and nothing but Python's own library, so that it takes little time.
"""

import http.client
import os
import sys

_TIMEOUT_S = 2.0
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  a server that listens on all addresses is asked on loopback


def main() -> int:
    given = {name.upper(): value for name, value in os.environ.items()}  # as for the server
    host = given.get("MQAN_HOST") or "127.0.0.1"  # an empty variable is not set
    port = given.get("MQAN_HTTP_PORT") or "8000"
    try:
        connection = http.client.HTTPConnection(_ANY.get(host, host), int(port), timeout=_TIMEOUT_S)
        connection.request("GET", "/health/ready")
        status = connection.getresponse().status
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(f"{host}, port {port}: {error}", file=sys.stderr)
        return 1
    if status != http.client.OK:
        print(f"{host}, port {port}: status {status}", file=sys.stderr)
    return int(status != http.client.OK)


if __name__ == "__main__":
    sys.exit(main())
