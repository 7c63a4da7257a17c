"""Commands that messages advise, completed with the options that their reader needs.

Messages name a command in backticks and with its own arguments only. Which objects it is about
(files, or a cluster) depends on who reads the message, so whoever shows one completes it.
"""

import re
import shlex
from collections.abc import Iterable, Mapping

from fanout.values import Value

DISTRIBUTION = "fanout-gitops"
"""Name that pip installs fanout by: `fanout` on PyPI is another project's."""
_ADVISED = re.compile(r"`((?:fanout|kubectl) [^`\n]+)`")
# Flags by the name of their setting, in the order in which they are added.
FLAGS: Mapping[str, tuple[str, ...]] = {
    "files": ("-f", "--files"),
    "namespace": ("-n", "--namespace"),
    "all_namespaces": ("-A", "--all-namespaces"),
    "context": ("--context",),
    "kubeconfig": ("--kubeconfig",),
    "config": ("--config",),
    "state_dir": ("--state-dir",),
    "records": ("--records",),
}
_ALL = frozenset(FLAGS)
_OF_FILES = _ALL - {"context", "kubeconfig"}
_NAMESPACES = frozenset({"namespace", "all_namespaces"})
_OF_KUBECTL = _NAMESPACES | {"context", "kubeconfig"}
# Settings that the options of a verb can change; verbs that are not listed have none of them.
SETTINGS_BY_VERB: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            "accept-records",
            "approve",
            "diff",
            "explain",
            "forecast",
            "get",
            "graph",
            "history",
            "plan",
            "promote",
            "remove",
            "render",
            "report",
            "resolve",
            "resume",
            "retry",
            "revoke",
            "rollback",
            "skip",
            "status",
            "suspend",
            "withdraw",
        ),
        _ALL,
    ),
    "controller": _ALL - _NAMESPACES - {"files"},
    "run": _OF_FILES,
    "sweep": _OF_FILES,
    "test": _OF_FILES - {"state_dir", "records"},
    "validate": _OF_FILES - _NAMESPACES - {"records"},
}
# In a cluster the controller sweeps; whoever does not want to wait asks it for a pass. The name of
# the annotation is not imported: its module loads pydantic, which messages of errors must not need.
REQUESTED_AT = "reconcile.fanout.dev/requestedAt"
_REQUEST = f'kubectl annotate upstreampolicies --all --overwrite {REQUESTED_AT}="$(date +%s)"'

# Only a sweep begins records anew, over objects that somebody has exported: a controller that began
# them would take a records repository that was moved by mistake for one that is lost.
_NEW_RECORDS = "--new-records"
_SWEEP_OF_EXPORTED = f"fanout sweep {_NEW_RECORDS} --drafts-only -f EXPORTED_OBJECTS"


def find_decisions(text: str) -> list[str]:
    """Return the commands of decisions that a text advises, whole but for the person's reason."""
    return [it for it in _ADVISED.findall(text) if " --reason WHY" in it]


def find_approvals(text: str) -> list[str]:
    """Return the commands of approvals that a text advises."""
    return [it for it in _ADVISED.findall(text) if it.startswith("fanout approve ")]


class MessageCommands(Value):
    """Commands as one reader can run them.

    `options`: setting and value of each option that the reader has to give, several for `files`, ""
    for a flag. `in_cluster`: the objects are those of a cluster.
    """

    options: tuple[tuple[str, str], ...] = ()
    in_cluster: bool = False

    def complete(self, command: str) -> str:
        """Return the command with the options that it takes and does not have yet."""
        if self.in_cluster:
            # What people run in a cluster in place of a command that reads files.
            if command.split()[:2] == ["fanout", "validate"]:
                command = "fanout status"
            elif _NEW_RECORDS in command.split():
                command = _SWEEP_OF_EXPORTED
            elif _is_sweep(command):
                command = _REQUEST
        head, pipe, rest = command.partition(" | kubectl ")
        if pipe:
            return f"{self.complete(head)} | {self._complete_kubectl(f'kubectl {rest}')}"
        if command.startswith("kubectl "):
            return self._complete_kubectl(command)
        settings = SETTINGS_BY_VERB.get("".join(command.split()[1:2]), frozenset())
        return " ".join((command, *self._list_options(command, settings)))

    def complete_all(self, commands: Iterable[str]) -> tuple[str, ...]:
        """Return commands to run, each once, without those that the controller makes needless."""
        return tuple(
            dict.fromkeys(
                self.complete(it) for it in commands if not (self.in_cluster and _is_sweep(it))
            )
        )

    def complete_text(self, text: str) -> str:
        """Return a text with all its commands in backticks completed."""
        # Nearly no text names a command.
        if "`" not in text or not (self.options or self.in_cluster):
            return text
        return _ADVISED.sub(lambda match: f"`{self.complete(match[1])}`", text)

    def for_namespace(self, namespace: str) -> "MessageCommands":
        """Return these commands about objects of a namespace, unless they have one already."""
        if any(name == "namespace" for name, _ in self.options):
            return self
        files = tuple(it for it in self.options if it[0] == "files")
        others = (it for it in self.options if it[0] not in ("files", "all_namespaces"))
        return MessageCommands((*files, ("namespace", namespace), *others), self.in_cluster)

    def _complete_kubectl(self, command: str) -> str:
        if command.startswith("kubectl config "):  # about the kubeconfig file itself
            return command
        settings = _OF_KUBECTL
        if " apply " in command:  # to objects that name their namespaces
            settings -= _NAMESPACES
        return " ".join((command, *self._list_options(command, settings)))

    def _list_options(self, command: str, settings: frozenset[str]) -> Iterable[str]:
        words = command.split()
        # A command that has one of the two options of namespaces must not get the other.
        has_namespace = any(flag in words for name in _NAMESPACES for flag in FLAGS[name])
        for name, value in self.options:
            is_present = any(flag in words for flag in FLAGS[name])
            if name in settings and not (has_namespace if name in _NAMESPACES else is_present):
                yield shlex.join((FLAGS[name][0], value) if value else FLAGS[name][:1])


def cluster_commands(namespace: str) -> MessageCommands:
    """Return the commands of messages that the controller writes about objects of a namespace.

    Which context leads to the cluster is known to each reader alone.
    """
    return MessageCommands((("namespace", namespace),), in_cluster=True)


def _is_sweep(command: str) -> bool:
    words = command.split()
    return words[:2] == ["fanout", "sweep"] and _NEW_RECORDS not in words
