"""Yardstick of reading a cluster: list objects and decode them, with the standard library alone.

Run as a file, `python -I benchmarks/raw_lists.py URL CERTIFICATE TOKEN PATH ...`, so that nothing
of fanout, of its libraries or of the tests is imported: it is what any program would have to do.
"""

import gzip
import json
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection

_CONNECTIONS = 8


def main() -> int:
    """Print the number of objects below all paths, listed at once over their own connections."""
    url, certificate, token, *paths = sys.argv[1:]
    context = ssl.create_default_context(cafile=certificate)
    address = url.removeprefix("https://")

    def count(path: str) -> int:
        connection = HTTPSConnection(address, context=context)
        headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip"}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status}")
        if response.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        connection.close()
        return len(json.loads(content)["items"])

    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        print(sum(threads.map(count, paths)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
