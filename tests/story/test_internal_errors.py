"""An exception that nobody expected is the outcome of whom it concerns; all others go on.

It is raised in every phase of a pass, for one policy, variant, target, repository or file among
several. What is real stays real: repositories, records, files, and the loop of `fanout run`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from operator import itemgetter
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import structlog
from companies import company
from fleet import PLAIN, PROMOTION, Fleet

from fanout.cli.startup import open_program
from fanout.cli.verbs.run import build_dependencies
from fanout.controller import run_loop as module
from fanout.controller.run_loop import RunLoop

PATIENCE = 20  # seconds, for a slow machine

WRITTEN = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: NAME}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  downstream: {repository: edge, package: written/NAME}
"""
GOOD = {"edge": {"good/ams"}, "core": {"good/ber"}, "far": {"good/cph"}}
BAD = {"edge": {"bad/ams"}, "core": {"bad/ber"}}
ALL = {"edge": {"good/ams", "bad/ams", "written/hand", "written/other"}} | {
    "core": {"good/ber", "bad/ber"},
    "far": {"good/cph"},
}


def targets(name: str, repositories: dict[str, set[str]]) -> str:
    entries = (
        f"{{name: {it}, packageNames: [{', '.join(those)}]}}" for it, those in repositories.items()
    )
    text = PLAIN.replace("name: monitoring}", f"name: {name}}}", 1)
    text = text.replace("{name: edge, packageNames: [sites/ams, sites/ber]}", ", ".join(entries))
    if name == "bad":
        text = text.replace("package: monitoring", "package: logging")
    return text


@company
def company_of_two(root: Path) -> Fleet:
    """Two policies and two variants written by hand; three repositories; nothing is written yet."""
    fleet = Fleet(root)
    for name in ("blueprints", "edge", "core", "far"):
        fleet.repository(name)
    fleet.release("v1")
    upstream = fleet.repos["blueprints"]
    files = upstream.files("refs/tags/monitoring/v1")
    content = {it: upstream.file("refs/tags/monitoring/v1", it) for it in files}
    logging_package = {it.replace("monitoring/", "logging/"): text for it, text in content.items()}
    commit = upstream.commit("main", logging_package, "logging v1")
    upstream.git("update-ref", "refs/tags/logging/v1", commit)
    fleet.write("policy-good.yaml", targets("good", GOOD))
    fleet.write("policy-bad.yaml", targets("bad", BAD))
    for name in ("hand", "other"):
        fleet.write(f"variant-{name}.yaml", WRITTEN.replace("NAME", name))
    template = 'commitTemplate: "Publish {{ policy }}"'
    fleet.write(
        "promotion.yaml",
        PROMOTION.replace("  policies:", f"  variants: [hand, other]\n  {template}\n  policies:"),
    )
    return fleet


def named(name: str) -> Callable[..., bool]:
    """Is any argument something with this name (of a policy, or of a variant written by hand)?"""
    return lambda *args, **_: any(_name(arg) == name for arg in args)


def _name(arg: Any) -> str:
    if (meta := getattr(arg, "metadata", None)) is not None:
        return str(meta.name)
    spec = getattr(arg, "spec", getattr(getattr(arg, "case", None), "spec", arg))
    for attribute in ("policy", "name"):
        name = getattr(spec, attribute, "")
        if isinstance(name, str) and name:
            return name
    return ""


def knows_policy(name: str) -> Callable[..., bool]:
    """Is any argument what a pass knows of this policy?"""
    return lambda *args, **_: any(
        getattr(getattr(arg, "resolved_policy", None), "name", "") == name for arg in args
    )


def at(repository: str) -> Callable[..., bool]:
    """Is any argument about this repository?"""
    return lambda *args, **_: any(f"/{repository}.git" in repr(arg)[:2000] for arg in args)


def to(repository: str) -> Callable[..., bool]:
    """Is any argument a change of this repository?"""
    return lambda _, changes: changes[0].remote.url.endswith(f"/{repository}.git")


def texts(text: str) -> Callable[..., bool]:
    """Does any argument hold this text?"""
    return lambda *args, **_: any(text in repr(arg) for arg in args)


def with_cases(name: str) -> Callable[..., bool]:
    """Is an argument the cases of this policy?"""
    return lambda *args, **_: any(
        isinstance(arg, tuple | list) and any(_name(case) == name for case in arg) for arg in args
    )


def below(path: str) -> Callable[..., bool]:
    """Is any argument a variant at this path, or its spec?"""
    return lambda *args, **_: any(
        getattr(getattr(arg, "spec", arg), "path", "") == path for arg in args
    )


HAND = {"edge": {"written/hand"}}
AMS = {"edge": {"bad/ams"}}
FAR = {"far": {"good/cph"}}
# Where it is raised, for whom, and what is not published for it.
FAULTS: list[tuple[str, str, Callable[..., bool], dict[str, set[str]]]] = [
    # A PromotionPolicy may be in a file that is not read, so that nothing is published.
    ("reading a file", "cluster.file_cluster:read_content", texts("{name: bad}"), ALL),
    (
        "putting files together",
        "cluster.file_cluster:_find_duplicate_objects",
        texts("policy-bad"),
        ALL,
    ),
    ("naming a policy", "reconcile.selection.policy_resolution:_resolve_policy", named("bad"), BAD),
    (
        "naming a written variant",
        "reconcile.selection.policy_resolution:_resolve_package_variant",
        named("hand"),
        HAND,
    ),
    (
        "a target's place",
        "selection.variant_builder:VariantBuilder.find_repository",
        texts("edge/bad"),
        AMS,
    ),
    (
        "a target's templates",
        "selection.variant_builder:VariantBuilder.build_variant",
        texts("edge/bad"),
        AMS,
    ),
    ("reading records", "cluster.policy_state_store:read_branch", texts("policy='bad'"), BAD),
    ("places of a policy", "reconcile.ownership.path_ownership:_named_places", named("bad"), BAD),
    (
        "what is to be listed",
        "reconcile.observation.repository_access:join_upstream_path",
        texts("'logging'"),
        BAD,
    ),
    (
        "what is known of places",
        "reconcile.ownership.path_ownership:PathOwnershipIndex.for_policy",
        named("bad"),
        BAD,
    ),
    (
        "who may decide",
        "reconcile.selection.policy_resolution:governing_promotions",
        named("bad"),
        BAD,
    ),
    ("listing a repository", "git.mirror_store:MirrorStore._list_one", at("far"), FAR),
    (
        "viewing a repository",
        "reconcile.observation.repository_observer:RepositoryObserver._read_changed",
        at("far"),
        FAR,
    ),
    ("pushing to a repository", "git.mirror_store:MirrorStore._change_one", to("far"), FAR),
    ("revisions", "reconcile.policy_evaluator:find_revisions", named("bad"), BAD),
    (
        "upstream packages",
        "reconcile.observation.upstream_packages:UpstreamPackages.get_package",
        texts("'logging'"),
        BAD,
    ),
    (
        "finding drafts elsewhere",
        "reconcile.variant_observer:VariantObserver.observe_variants",
        knows_policy("bad"),
        BAD,
    ),
    (
        "asking machines",
        "reconcile.observation.evidence_observer:find_due_checks",
        with_cases("bad"),
        BAD,
    ),
    ("proving evidence", "reconcile.policy_evaluator:match_evidence", with_cases("bad"), BAD),
    (
        "the gates",
        "reconcile.selection.propagation_conditions:evaluate_gates",
        texts("name='bad-"),
        BAD,
    ),
    ("a step", "reconcile.policy_evaluator:plan_step", named("bad"), BAD),
    ("planning", "reconcile.policy_evaluator:plan_policy", texts("'bad'"), BAD),
    (
        "observing a variant",
        "reconcile.variant_observer:VariantObserver._observe_where_published",
        below("bad/ams"),
        AMS,
    ),
    (
        "what people changed",
        "reconcile.variant_observer:VariantObserver._add_history",
        below("bad/ams"),
        AMS,
    ),
    # One variant of the stage failed, and none may (maxFailures), so that the other waits.
    ("inputs", "reconcile.draft_rendering:resolve_inputs", below("bad/ams"), BAD),
    ("rendering", "reconcile.draft_rendering:render_variant", below("bad/ams"), BAD),
    ("a draft's commit", "plan.changes.branch_changes:build_draft", named("bad"), BAD),
    (
        "a merge commit",
        "plan.changes.repository_changes:build_publication_message",
        lambda key, *_: key.policy == "bad",
        BAD,
    ),
    (
        "recording",
        "cluster.policy_state_store:PolicyStateStore._changed_shards",
        texts("policy='bad'"),
        BAD,
    ),
]
# Behind the push, or in the pass after it.
LATE = [
    ("reading the status", "cluster.record_files:parse_status", texts("variant/bad")),
    (
        "places on record",
        "reconcile.ownership.path_ownership:RecordedPaths.add_line",
        texts("'bad-"),
    ),
    ("what came of a push", "reconcile.execution.plan_execution:_settle", named("bad")),
    ("outcomes", "reconcile.execution.plan_execution:_build_outcome", texts("policy='bad'")),
    (
        "troubles",
        "reconcile.pass_results:PolicyResult.find_repository_problems",
        knows_policy("bad"),
    ),
]


@contextmanager
def injected(place: str, concerns: Callable[..., bool]) -> Iterator[None]:
    """The function raises for those whom it concerns."""
    where, _, name = place.partition(":")
    home: Any = __import__(f"fanout.{where}", fromlist=["_"])
    *owners, attribute = name.split(".")
    for owner in owners:
        home = getattr(home, owner)
    real = getattr(home, attribute)

    def raising(*args: Any, **named_args: Any) -> Any:
        if concerns(*args, **named_args):
            raise ZeroDivisionError("injected")
        return real(*args, **named_args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, attribute, raising)
        yield


def published(fleet: Fleet) -> dict[str, set[str]]:
    """The packages on the branches of the repositories."""
    return {
        name: {it.removesuffix("/Kptfile") for it in repo.files() if it.endswith("/Kptfile")}
        for name, repo in fleet.repos.items()
        if name != "blueprints"
    }


def without(lost: dict[str, set[str]]) -> dict[str, set[str]]:
    return {name: those - lost.get(name, set()) for name, those in ALL.items()}


@contextmanager
def staying(fleet: Fleet) -> Iterator[Callable[[Callable[[], bool]], list[Any]]]:
    """`fanout run`; yields what waits for a condition and answers its log."""
    with (
        pytest.MonkeyPatch.context() as patch,
        structlog.testing.capture_logs() as log,
        open_program(fleet.settings(), long_running=True) as program,
    ):
        patch.setattr(module, "FILE_CHECK_INTERVAL", 0.01)
        patch.setattr(module, "FIRST_PAUSE", 0.01)
        loop = RunLoop(build_dependencies(program), timedelta(milliseconds=10))
        thread = threading.Thread(target=loop.run)

        def until(condition: Callable[[], bool]) -> list[dict[str, Any]]:
            deadline = monotonic() + PATIENCE
            while not condition():
                assert thread.is_alive()
                assert monotonic() < deadline, (published(fleet), log)
                sleep(0.03)  # to look takes time from the loop
            return log

        thread.start()
        try:
            yield until
        finally:
            loop.stop()
            thread.join(PATIENCE)
            assert not thread.is_alive()


def passes(log: list[Any]) -> int:
    return sum(entry["event"] == "Pass done" for entry in log)


def assert_reported_once(text: str) -> None:
    assert text.count("InternalError: ZeroDivisionError at fanout.") == 1, text
    assert "Traceback" not in text


@pytest.mark.parametrize(("_", "place", "concerns", "lost"), FAULTS, ids=map(itemgetter(0), FAULTS))
def test_an_internal_error_is_the_outcome_of_its_subject_alone(
    company_of_two: Fleet,
    _: str,
    place: str,
    concerns: Callable[..., bool],
    lost: dict[str, set[str]],
):
    fleet, expected = company_of_two, without(lost)
    with injected(place, concerns):
        with staying(fleet) as until:
            log = until(lambda: published(fleet) == expected)
            done = passes(log) + 3
            assert_reported_once(str(until(lambda: passes(log) > done)))
        swept = fleet.sweep()
        assert swept.code == 3, swept.err
        assert_reported_once(swept.err)
        assert swept.out != "nothing to do\n"
        assert published(fleet) == expected
    for _number in range(3):
        fleet.sweep()
    assert published(fleet) == ALL, "once it is mended, all is done"


@pytest.mark.parametrize(("_", "place", "concerns"), LATE, ids=map(itemgetter(0), LATE))
def test_a_publication_is_recovered_after_an_error_behind_its_push(
    company_of_two: Fleet, _: str, place: str, concerns: Callable[..., bool]
):
    fleet = company_of_two
    with injected(place, concerns):
        swept = [fleet.sweep() for _number in range(4)]
        assert published(fleet) == ALL
        failed = [it for it in swept if it.code]
        assert {it.code for it in failed} == {3}
        for it in failed:
            assert_reported_once(it.err)
    fleet.settle()
    assert {it["state"] for it in fleet.variants().values()} == {"Ready"}


def test_the_trace_is_shown_when_asked_and_once(company_of_two: Fleet):
    fleet = company_of_two
    with injected("reconcile.draft_rendering:render_variant", named("bad")):
        swept = fleet.sweep("-v")
    assert swept.err.count("Traceback (most recent call last)") == 1
    assert "ZeroDivisionError: injected" in swept.err
    assert "2 variants (" in swept.err, "equal for both, so told once"


def test_a_commit_without_its_message_is_published_all_the_same(company_of_two: Fleet):
    fleet = company_of_two
    with injected("sandbox.evaluator:ProcessSandbox.render", lambda *_: True):
        fleet.sweep()
        swept = fleet.sweep()
    assert published(fleet) == ALL
    assert swept.err.count("InternalError") == 1
    assert "the commit has the default message" in swept.err


def test_a_schedule_that_fails_binds_whom_it_names_and_nobody_else(company_of_two: Fleet):
    fleet = company_of_two
    schedule = '  schedule: "0 0 1 1 *"\n  policies: [bad]'
    fleet.write("timed.yaml", PROMOTION.replace('  policies: ["*"]', schedule).replace(
        "name: everything", "name: timed"
    ))  # fmt: skip
    with injected("controller.sweep_schedule:last_fire", lambda *_: True), staying(fleet) as until:
        log = until(lambda: published(fleet) == without(BAD))
        assert str(log).count("InternalError") == 1
        assert "PromotionPolicy default/timed" in str(log)


def test_machines_read_the_reason(company_of_two: Fleet):
    fleet = company_of_two
    with injected("reconcile.policy_evaluator:find_revisions", named("bad")):
        fleet.sweep()
        [problem] = fleet.sweep("-o", "json").json["problems"]
        assert (problem["policy"], problem["reason"]) == ("default/bad", "InternalError")
        policies = fleet.run("get", "policies", "-o", "json").items
        conditions = {it["metadata"]["name"]: it["status"]["conditions"] for it in policies}
    assert {it["reason"] for it in conditions["bad"]} == {"InternalError"}
    assert {it["reason"] for it in conditions["good"]} == {"Ready"}


def test_no_variant_is_removed_for_a_policy_that_fails_to_resolve(company_of_two: Fleet):
    """Its variants are not those of targets that are gone."""
    fleet = company_of_two
    fleet.settle()
    fleet.write("policy-good.yaml", targets("good", GOOD) + "# so that it is looked at again\n")
    with injected("reconcile.selection.policy_resolution:_resolve_policy", named("bad")):
        swept = fleet.sweep()
        assert swept.code == 3
        assert "target" not in swept.err
        result = fleet.run("remove", "bad", "--all-gone", "--reason", "tidy", "--yes")
        assert result.code != 0
    assert published(fleet) == ALL


def test_a_mark_inside_a_file_beside_an_object_that_is_there_twice(company_of_two: Fleet):
    fleet = company_of_two
    one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
    fleet.write("z.yaml", f"{one}---\n\ufeff{one}")
    swept = fleet.sweep()
    assert swept.code == 3
    assert "z.yaml:5: YAML syntax: byte order mark inside the file" in swept.err
    assert swept.out == "7 drafts written\n"


def test_a_package_a_thousand_directories_deep_is_its_own_policy_s_fault(company_of_two: Fleet):
    fleet = company_of_two
    upstream = fleet.repos["blueprints"]
    files = {f"logging/{'d/' * 1000}deep.yaml": "apiVersion: v1\nkind: Deep\nmetadata: {name: d}\n"}
    tree = upstream.commit("main", files, "logging v2")
    upstream.git("update-ref", "refs/tags/logging/v2", tree)
    swept = [fleet.sweep() for _number in range(3)]
    assert {it.code for it in swept} == {3}
    assert published(fleet) == without(BAD)
    assert swept[-1].err.count("default/bad:") == swept[-1].err.count("\n") == 1
