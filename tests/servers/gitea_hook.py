"""The hooks of Gitea's repositories without Gitea's program, which takes 0.1 s to start.

`gitea hook` is a client of its server: before a push it asks whether the refs may be written, and
afterwards it reports which were. Here are the same two calls. A refusal is worded by Gitea's own
program, which is asked once more. This one starts with little of the standard library for the same
reason.
"""

import _socket
import json
import os
import sys

# Fields of the call, by the variables in which the server gave them to git.
NUMBERS = {
    "UserID": "GITEA_PUSHER_ID",
    "PullRequestID": "GITEA_PR_ID",
    "DeployKeyID": "GITEA_DEPLOY_KEY_ID",
    "ActionsTaskID": "GITEA_ACTIONS_TASK_ID",
}
TEXTS = {
    "UserName": "GITEA_PUSHER_NAME",
    "PushTrigger": "GITEA_PUSH_TRIGGER",
    "GitObjectDirectory": "GIT_OBJECT_DIRECTORY",
    "GitAlternativeObjectDirectories": "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GitQuarantinePath": "GIT_QUARANTINE_PATH",
}


def main(port: str, token: str, program: str, config: str, path: str) -> int:
    """Run the hook of this path; return its exit code."""
    hook = os.path.basename(path)  # noqa: PTH119 - pathlib takes as long as all else here
    lines = sys.stdin.read()
    codes = [tell_server(int(port), token, hook, lines)]
    if codes == [None]:
        codes = [run([program, "hook", "--config", config, hook], lines)]
    for name in sorted(os.listdir(f"{path}.d")):  # noqa: PTH208
        if name != "gitea":
            codes.append(run([f"{path}.d/{name}"], lines))
    return next((it for it in codes if it), 0)


def tell_server(port: int, token: str, hook: str, lines: str) -> int | None:
    """Return 0 if the server agrees, and None if Gitea's own program has to be run."""
    if "SSH_ORIGINAL_COMMAND" not in os.environ:
        return None  # the push did not come through the server
    old, new, refs = zip(*(line.split(" ") for line in lines.splitlines()), strict=True)
    push = {"OldCommitIDs": old, "NewCommitIDs": new, "RefFullNames": refs}
    push |= {field: int(os.environ.get(it) or 0) for field, it in NUMBERS.items()}
    push |= {field: os.environ.get(it, "") for field, it in TEXTS.items()}
    owner, name = os.environ["GITEA_REPO_USER_NAME"], os.environ["GITEA_REPO_NAME"]
    status, answer = post(port, token, f"{hook}/{owner}/{name}", json.dumps(push))
    if status != 200:
        return None
    if hook == "post-receive":
        print(f"Processed {len(refs)} references in total", flush=True)
        for result in json.loads(answer)["Results"] or ():
            if result["Message"]:
                print(f"\nVisit {result['URL']}\n", file=sys.stderr, flush=True)
    return 0


def post(port: int, token: str, path: str, body: str) -> tuple[int, str]:
    """Call the server's internal API; return status and text."""
    request = (
        f"POST /api/internal/hook/{path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n"
        f"X-Gitea-Internal-Auth: Bearer {token}\r\nX-Real-IP: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    connection = _socket.socket()
    connection.connect(("127.0.0.1", port))
    connection.sendall(request.encode())
    with os.fdopen(connection.detach(), "rb") as stream:
        head, _, text = stream.read().decode().partition("\r\n\r\n")
    return int(head.split(" ", 2)[1]), text


def run(command: list[str], lines: str) -> int:
    import subprocess

    return subprocess.run(command, input=lines, text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
