"""Runs commands of fanout, each in a process forked from this one: the modules load once.

Loads the packages that its arguments name, and listens on the Unix socket that the first one names
until its input ends. A connection sends a JSON
line `{"command", "directory", "environment"}` with the descriptors of stdin, stdout and stderr. The
command is what would follow `python`. The connection gets a line with the process id, and one with
the exit code (negative: the signal).
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
from importlib import import_module
from pkgutil import walk_packages
from time import tzset
from typing import Any

LIMIT = 1 << 20  # bytes of a request
LATER = ("git.cmd", "fanout.serve.http_server")  # what commands load while they run


def load(name: str) -> None:
    """Load a package and the modules below it."""
    package = import_module(name)
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)


def become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Turn this process into one that a shell would have started."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tzset()
    # The driver writes to a pipe, whose buffer is for blocks and not for lines.
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    match request["command"]:
        case ["-m", name, *arguments]:
            sys.argv = [name, *arguments]
            runpy.run_module(name, run_name="__main__")
        case ["-c", text, *arguments]:
            sys.argv = ["-c", *arguments]
            exec(text, {"__name__": "__main__"})
        case [path, *arguments]:
            sys.argv = [path, *arguments]
            runpy.run_path(path, run_name="__main__")


def serve(connection: socket.socket) -> None:
    """Run a command in a child, and tell of it."""
    data, descriptors, _, _ = socket.recv_fds(connection, LIMIT, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(LIMIT)
    request = json.loads(data)
    child = os.fork()
    if child == 0:
        connection.close()
        become(request, descriptors)
        return  # not reached: the program ends the process
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(b"%d\n" % child)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(b"%d\n" % status)


def main() -> None:
    """Fork a process per connection, which forks the command and waits for it."""
    address, *packages = sys.argv[1:]
    for name in packages:
        load(name)
    for name in LATER:
        import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        waiting: set[int] = set()
        while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
            connection, _ = listener.accept()
            waiting -= {it for it in waiting if os.waitpid(it, os.WNOHANG)[0]}
            child = os.fork()
            if child == 0:
                listener.close()
                with connection:
                    serve(connection)
                os._exit(0)
            connection.close()
            waiting.add(child)
        for child in waiting:
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
