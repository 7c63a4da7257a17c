"""Commands of messages, completed for their readers."""

from datetime import UTC, datetime

import click
import pytest

from fanout.api.object_meta import Label
from fanout.api.reasons import NotificationEvent
from fanout.cli.main import VERBS, cli
from fanout.message_commands import (
    FLAGS,
    REQUESTED_AT,
    SETTINGS_BY_VERB,
    MessageCommands,
    cluster_commands,
)
from fanout.plan.written_objects import ObjectName
from fanout.present.notifications.notification_conditions import (
    NotificationCondition,
    group_transitions,
)
from fanout.present.notifications.notifier import build_event
from fanout.present.status_views import build_broken_status

AT = datetime(2026, 3, 2, tzinfo=UTC)
FILES = MessageCommands((("files", "policies"), ("files", "my sites")))
CLUSTER = MessageCommands(
    (("namespace", "shop"), ("context", "kind"), ("records", "ssh://git/records")), in_cluster=True
)
ALL = MessageCommands((("all_namespaces", ""),), in_cluster=True)
REQUEST = 'kubectl annotate upstreampolicies --all --overwrite reconcile.fanout.dev/requestedAt="$(date +%s)"'  # noqa: E501
SWEEP = "fanout sweep --new-records --drafts-only -f EXPORTED_OBJECTS"
COMPLETED = [
    (FILES, "fanout promote edge --reason WHY", "{} -f policies -f 'my sites'"),
    (FILES, "fanout promote edge -f other", "{}"),
    (FILES, "fanout sweep", "{} -f policies -f 'my sites'"),
    (FILES, "fanout package validate DIRECTORY", "{}"),
    (FILES, "fanout crds --admission | kubectl apply --server-side -f -", "{}"),
    (CLUSTER, "fanout explain edge", "{} -n shop --context kind --records ssh://git/records"),
    (
        CLUSTER,
        "fanout accept-records edge -n other",
        "{} --context kind --records ssh://git/records",
    ),
    (CLUSTER, "fanout version", "{}"),
    (
        CLUSTER,
        "fanout validate",
        "fanout status -n shop --context kind --records ssh://git/records",
    ),
    (CLUSTER, "fanout sweep --drafts-only", f"{REQUEST} -n shop --context kind"),
    (
        CLUSTER,
        "fanout crds --admission | kubectl apply --server-side -f -",
        "{} --context kind",
    ),
    (cluster_commands("shop"), "fanout approve edge --stage dev", "{} -n shop"),
    (ALL, "fanout sweep", f"{REQUEST} -A"),
    (ALL, "fanout explain edge", "{} -A"),
    (ALL, "fanout explain edge -n shop", "{}"),
    (ALL, "fanout crds --admission | kubectl apply --server-side -f -", "{}"),
    (ALL.for_namespace("shop"), "fanout sweep", f"{REQUEST} -n shop"),
    (ALL, "kubectl config get-contexts", "{}"),
    # The namespace of the context is that of the next command, too.
    (MessageCommands((), in_cluster=True), "fanout sweep", REQUEST),
    (CLUSTER, "fanout sweep --new-records", f"{SWEEP} -n shop --records ssh://git/records"),
    (FILES, "fanout sweep --new-records", "{} -f policies -f 'my sites'"),
    (MessageCommands(), "fanout sweep", "{}"),
]


@pytest.mark.parametrize(("reader", "command", "expected"), COMPLETED)
def test_a_command_gets_the_options_that_it_takes(
    reader: MessageCommands, command: str, expected: str
):
    completed = expected.format(command)
    assert reader.complete(command) == completed
    assert reader.complete(completed) == completed
    assert reader.complete_text(f"it is held; run `{command}` or wait") == (
        f"it is held; run `{completed}` or wait"
    )


@pytest.mark.parametrize("text", ["`fanout  `", "`fanout | |`", "`kubectl  | x`", "``fanout`"])
def test_any_text_is_completed(text: str):
    for reader in (FILES, CLUSTER):
        assert reader.complete_text(text).startswith(text[:-1].rstrip())


def test_a_cluster_needs_no_sweep():
    commands = ("fanout sweep", "fanout resume edge --reason WHY", "fanout sweep --wait edge")
    assert cluster_commands("shop").complete_all(commands) == (
        "fanout resume edge --reason WHY -n shop",
    )
    assert MessageCommands().complete_all((*commands, "fanout sweep")) == commands


def test_statuses_and_events_have_the_namespace_of_their_object():
    name = ObjectName("UpstreamPolicy", "shop", "edge")
    remedy = "`fanout validate` reports every error, and `fanout resume edge` is not needed"
    item = build_broken_status(name, {}, [f"it is wrong; {remedy}"])
    expected = "`fanout status -n shop` reports every error, and `fanout resume edge -n shop`"
    assert {it["message"] for it in item.status["conditions"]} == {
        f"it is wrong; {expected} is not needed"
    }


def test_notifications_have_the_namespace_of_their_policy():
    condition = NotificationCondition(NotificationEvent.POLICY_STOPPED, "dev", "v1", "edge-1")
    for in_cluster, verb in ((True, "status"), (False, "validate")):
        [transition] = group_transitions({condition: "run `fanout validate`"})
        event = build_event(transition, "default", "shop", "edge", AT, in_cluster=in_cluster)
        commands = f"run `fanout {verb}{' -n shop' if in_cluster else ''}`"
        assert commands in event["data"]["message"]


def test_the_annotation_is_that_of_the_objects():
    assert REQUESTED_AT == Label.REQUESTED_AT


@pytest.mark.parametrize("verb", VERBS)
def test_the_table_has_the_options_of_each_verb(verb: str):
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    if isinstance(command, click.Group):
        assert verb not in SETTINGS_BY_VERB, "its subcommands differ"
        return
    options = {it.name for it in command.params if isinstance(it, click.Option)}
    expected = options & FLAGS.keys() if verb != "init" else set()
    assert SETTINGS_BY_VERB.get(verb, frozenset()) == expected


def test_the_flags_are_those_of_the_options():
    command = cli.get_command(click.Context(cli), "explain")
    assert command is not None
    flags = {it.name: tuple(it.opts) for it in command.params if it.name in FLAGS}
    assert {name: flags[name] for name in FLAGS} == FLAGS
