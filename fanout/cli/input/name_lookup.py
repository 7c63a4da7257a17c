"""Lookup of policies, stages and variants by the names that a command line gives them.

A variant is found by its name, target, `repository:path`, path or short target name. Variants whose
target is gone (orphaned variants) are found by the same names, as far as records tell.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from fanout.api.field_errors import suggest_name
from fanout.api.reasons import Reason
from fanout.cli.declarations import are_policies_unread, check_policies
from fanout.cli.output.pass_output import report_input_errors
from fanout.cli.process_exit import not_found
from fanout.cli.startup import Program
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import InvalidInput, Stopped
from fanout.gates.gate_wording import format_names
from fanout.groups import group_pairs
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.execution.removal_execution import find_places
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, repository_place
from fanout.selection.target_selection import usable_repositories
from fanout.selection.variant_spec import build_variant_name, variant_digest


def unique_names(variant: RenderedVariant) -> tuple[str, ...]:
    """Return the unique names of a variant in its policy: name, target and `repository:path`."""
    spec = variant.spec
    return (spec.name, spec.target, f"{spec.repository}:{spec.path}")


def short_names(variant: RenderedVariant) -> tuple[str, ...]:
    """Return the names that variants may share: path, and short forms of the target.

    Among them are `POLICY/TARGET` and `POLICY/STAGE/TARGET`.
    """
    spec = variant.spec
    target = spec.target.rpartition("/")[2]
    in_policy = (f"{spec.policy}/{target}", f"{spec.policy}/{spec.stage}/{target}")
    qualified = in_policy if spec.policy else ()
    return (spec.path, *target_names(spec.target, spec.repository), *qualified)


def target_names(key: str, repository: str = "") -> tuple[str, ...]:
    """Return the short names of the target with this key.

    `Cluster.infra.example.com/platform/p1` is p1, platform/p1, Cluster/p1 and cluster/p1.
    The key of a `repository` chosen by name has a package for a namespace; its name counts too.
    """
    kind, _, remainder = key.partition("/")
    first, _, name = remainder.partition("/")
    kind = kind.partition(".")[0]
    repository_names = (first,) if kind == "Repository" and first == repository else ()
    qualified_names = (f"{first}/{name}",) if first else ()
    return (*repository_names, name, *qualified_names, f"{kind}/{name}", f"{kind.lower()}/{name}")


def find_named_variants(variants: Iterable[RenderedVariant], name: str) -> list[RenderedVariant]:
    """Return the variants with this name; if there is none, those with it as a short name."""
    candidates = list(variants)
    # A short name of one variant may be the full name of another, which then is meant.
    by_unique_name = [variant for variant in candidates if name in unique_names(variant)]
    return by_unique_name or [variant for variant in candidates if name in short_names(variant)]


def match_orphaned(
    policy: ResolvedPolicy,
    orphaned: Iterable[str],
    names_by_variant: Mapping[str, Collection[str]],
    name: str,
) -> list[str]:
    """Return the orphaned variants among `orphaned` that a name may refer to.

    A variant matches by its path with or without the repository (`names_by_variant`, by
    variant), by its target's key as far as its name proves it (a variant's name ends with a
    digest of the key), or by the readable part of its own name.
    """
    # The target no longer exists, so its key cannot be read anywhere. Each key that the name
    # could stand for is digested instead and compared with the digest in the variant's name.
    kinds = {"Repository"}
    for entry in policy.upstream_policy.spec.targets if policy.upstream_policy else ():
        if (selector := entry.object_selector) is not None:
            group, slash, _ = selector.api_version.partition("/")
            kinds.add(f"{selector.kind}.{group}" if slash else selector.kind)
    keys = [
        f"{kind}/{namespace}/{name.rpartition('/')[2]}"
        for kind in kinds
        for namespace in ("", policy.namespace)
    ]
    digests = {
        variant_digest(policy.namespace, policy.name, key)
        for key in (name, *(it for it in keys if name in target_names(it)))
    }
    stem = build_variant_name(policy.namespace, policy.name, "", name).rpartition("-")[0]
    return [
        variant
        for variant in orphaned
        if name in names_by_variant.get(variant, ())
        or variant.rpartition("-")[2] in digests
        or ("/" not in name and variant.rpartition("-")[0] == stem)
    ]


# Problems with which the records of a policy are unknown or incomplete.
_UNREADABLE_RECORDS = (Reason.RECORD_UNREADABLE, Reason.RECORDS_LOST, Reason.RECORDS_REWOUND)


def read_input(program: Program, policies: Collection[str] = ()) -> tuple[DeclaredObjects, int]:
    """Return the declared objects of the next pass, and the number of errors, which are printed.

    Raises InvalidInput if there are no objects, or for a name that is not one of a policy.
    """
    declared, namespace = program.check_input(), program.settings.namespace
    errors = report_input_errors(declared, namespace)
    check_policies(policies, declared, namespace)
    return declared, errors


def refuse_unrecordable(item: PolicyResult) -> None:
    """Raise Stopped if the policy's records cannot be read.

    Failures and suspensions must be recordable while upstream has a problem. But one more record
    would make lost records look like new ones.
    """
    problem = item.error
    # Without a head nothing was ever recorded, or all of it is lost; a problem leaves that
    # undecided.
    if problem is not None and (
        not item.policy_state.head or problem.reason in _UNREADABLE_RECORDS
    ):
        refuse_stopped(item)


def refuse_stopped(item: PolicyResult) -> None:
    """Raise Stopped with the problem that stops the policy, in the words of a sweep."""
    if (problem := item.error) is not None:
        raise Stopped(f"{item.title}: {problem}", reason=problem.reason) from problem


def find_policy(program: Program, policy: str) -> PolicyResult:
    """Evaluate the policy of this name, also if a problem stops it.

    Raises InvalidInput if there is none that can be used, or several in different namespaces.
    """
    mode = PassMode(only=frozenset([policy]), namespace=program.settings.namespace)
    policies = program.observe(mode).policies
    if len(policies) > 1:
        raise not_found(f"several namespaces have policy {policy}", "choose one with -n")
    if policies:
        return policies[0]
    declared, namespace = program.read_declared(), program.settings.namespace
    if is_unread := are_policies_unread(declared, namespace):
        report_input_errors(declared, namespace)
    for finding in declared.faults:
        words = finding.where.object.split("/")  # a namespace may stand between kind and name
        is_named = words[0] in ("UpstreamPolicy", "PackageVariant") and words[-1] == policy
        if finding.is_error_in(namespace) and is_named:
            problem, remedy = finding.problem, finding.remedy
            raise InvalidInput(problem, reason="InvalidObject", remedy=remedy, where=finding.where)
    problem = f"there is no policy {policy}"
    # One that cannot be read looks as if it did not exist.
    if is_unread:
        raise not_found(f"{problem} among those that can be read", "correct the errors above")
    raise not_found(problem, "run `fanout get policies`")


def find_variant_of(item: PolicyResult, name: str, stage: str = "") -> RenderedVariant:
    """Return the policy's variant of this name.

    A variant is named by name, target, `repository:path`, path or short target name. Raises
    InvalidInput if there is none, if there are several, and if it is not in the stage.
    """
    matches = find_named_variants(item.variants, name)
    if len(matches) != 1:
        stage_variants = [variant for variant in item.variants if stage in ("", variant.spec.stage)]
        raise build_ambiguous_name(
            name, matches, stage_variants, f"{item.title} has no variant {name}"
        )
    own_stage = matches[0].spec.stage
    if stage and stage != own_stage:
        place = f"in stage {own_stage}, not in {stage}" if own_stage else "in no stage"
        raise InvalidInput(
            f"variant {name} of {item.title} is {place}",
            reason="NotInStage",
            remedy=f"use --stage {own_stage}, or omit it" if own_stage else "omit the stage",
        )
    return matches[0]


def build_ambiguous_name(
    name: str,
    matches: Sequence[RenderedVariant],
    suggested: Sequence[RenderedVariant],
    none_message: str,
) -> InvalidInput:
    """Build the error for a name that none or several variants have.

    `matches`: the variants with that name; `suggested`: those to suggest if `matches` is
    empty; `none_message`: the message for that case.
    """
    if matches:
        choices = format_names(f"{it.spec.name} (target {it.spec.target})" for it in matches)
        return not_found(f"{name} matches several variants", f"use one of: {choices}")
    names = [variant.spec.name for variant in suggested]
    known_names = [
        known_name
        for variant in suggested
        for known_name in (*unique_names(variant), *short_names(variant))
    ]
    otherwise = f"there are: {format_names(names)}" if names else "run `fanout get variants`"
    return not_found(none_message, suggest_name(name, known_names, otherwise))


def select_variants(
    item: PolicyResult, stage: str, variants: Sequence[str] = ()
) -> list[RenderedVariant]:
    """Return the variants of a stage. With `variants`, those of them that have these names."""
    return [
        variant
        for variant in item.variants
        if variant.spec.stage == stage and (not variants or variant.spec.name in variants)
    ]


def require_candidate(item: PolicyResult, stage: str) -> str:
    """Return the stage's candidate revision. Raises InvalidInput if it has none."""
    stage_decision = item.decision.stages.get(stage) if item.decision else None
    if stage_decision is None or not stage_decision.candidate:
        raise not_found(
            f"{item.title} has no candidate in stage {stage or '(none)'}",
            "use --stage; run `fanout get stages` for the stages",
        )
    return stage_decision.candidate


def find_variant(program: Program, name: str) -> tuple[PolicyResult, RenderedVariant]:
    """Return the variant of this name, and its policy.

    A variant is named by name, target, `repository:path`, path or short target name.
    Searches all policies. Raises InvalidInput, and Stopped if a problem stops the policy.
    """
    policies = program.observe(PassMode(namespace=program.settings.namespace)).policies
    # Keyed by identity: hashing a variant by value would hash everything that it holds.
    owners = {id(variant): item for item in policies for variant in item.variants}
    variants = [variant for item in policies for variant in item.variants]
    matches = find_named_variants(variants, name)
    if len(matches) != 1:
        raise build_ambiguous_name(name, matches, variants, f"there is no variant {name}")
    item = owners[id(matches[0])]
    refuse_stopped(item)
    return item, matches[0]


def find_orphaned_paths(item: PolicyResult, declared: DeclaredObjects) -> dict[str, set[str]]:
    """Return path and `repository:path` of what is recorded or drafted, by variant.

    A repository may be declared under several names; each gives a `repository:path`.
    """
    usable = usable_repositories(item.resolved_policy.namespace, declared.repositories)
    aliases = group_pairs((repository_place(it), name) for name, it in usable.items())
    names_by_variant: dict[str, set[str]] = {}
    for variant, (place, path) in find_places(item):
        names = (f"{name}:{path}" for name in aliases.get(place, ()))
        names_by_variant.setdefault(variant, set()).update((path, *names))
    return names_by_variant


def find_orphaned(item: PolicyResult, declared: DeclaredObjects, name: str) -> list[str]:
    """Return the orphaned variants that a name, path or target may refer to."""
    orphaned = [orphan.name for orphan in item.orphans]
    # A full name is unambiguous even if it is the short name of another orphan.
    if name in orphaned:
        return [name]
    if not orphaned:
        return []
    return match_orphaned(item.resolved_policy, orphaned, find_orphaned_paths(item, declared), name)
