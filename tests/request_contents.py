"""Contents of pull requests for tests: ordinary ones, and one made of hostile names."""

from datetime import UTC, datetime

from fanout.api.gate_vocabulary import Verdict
from fanout.api.promotion_policy import MergeMethod
from fanout.api.results import CheckResult, Hold
from fanout.api.view_base import RequestView
from fanout.plan.pull_requests.object_changes import ChangeCounts, FieldChange, PackageDifference
from fanout.plan.pull_requests.request_values import (
    ChangedPackages,
    PackageChange,
    RequestCheck,
    RequestConflict,
    RequestContent,
    RequestHold,
    RequestUpstream,
    RequestVariant,
    StageEvidence,
    StageLine,
    UpstreamCommit,
    UpstreamHistory,
)
from fanout.plan.rendered_variant import ChangeVerb
from fanout.values import replace

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MORNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PATCH = (
    "--- published/deployment.yaml",
    "+++ draft/deployment.yaml",
    "@@ -1,3 +1,3 @@",
    " spec:",
    "-  replicas: 2",
    "+  replicas: 3",
)

# A name, and what a forge must not make of it.
HOSTILE_NAMES = {
    "mention": "@ann",
    "team": "@acme/team",
    "mention in brackets": "(@ann)",
    "issue": "#1",
    "request": "!1",
    "issue of another repository": "ada/other#1",
    "issue of a tracker": "ABC-123",
    "commit": COMMIT,
    "short commit": "0123456",
    "commit of another repository": f"ada/other@{COMMIT}",
    "URL": "https://evil.example/x",
    "page": "www.evil.example",
    "address": "ann@evil.example",
    "link": "[click](https://evil.example)",
    "reference link": "[click][1]",
    "short link": "[[https://evil.example]]",
    "image": "![x](https://evil.example/x.png)",
    "angle link": "<https://evil.example>",
    "script": "<script>alert(1)</script>",
    "tag": '<img src="https://evil.example/x.png" onerror="alert(1)">',
    "closed tag": "</details></div><h1>x</h1>",
    "comment": "<!-- x",
    "end of a comment": "--> x",
    "marker": "<!-- fanout install=x policy=x/x stage=x digest=sha256:0 -->",
    "marker on a line of its own": (
        "x\n<!-- fanout install=x policy=x/x stage=x digest=sha256:0 -->\nx"
    ),
    "beginning of fanout's part": "x\n<!-- fanout: x -->\nx",
    "backtick": "`",
    "backticks": "``` x ````",
    "code": "a `b` c",
    "table": "a | b\n|---|---|\n| c | d",
    "heading": "# x",
    "underlined heading": "x\n===",
    "rule": "---",
    "list": "- [x] done",
    "number of a list": "1. x",
    "quote": "> x",
    "emphasis": "**x** _y_ ~~z~~",
    "entity": "&lt;b&gt; &#64;ann",
    "backslash": "\\@ann \\",
    "emoji": ":smile:",
    "mathematics": "$x$ $$y$$",
    "footnote": "[^1]",
    "action of GitLab": "/close",
    "keyword": "fixes #1",
    "line breaks": "a\r\nb\rc\n\n@ann",
    "bidirectional": "a\u202e@ann\u2066b",
    "zero width": "@\u200bann \ufeff",
    "control": "a\x00\x07\x1b[31mb",
    "300 characters": "x" * 300,
    "300 backticks": "`" * 300,
    "spaces": "  x  ",
    "empty": "",
}


VARIANTS = (
    RequestVariant(
        name="site1",
        path="site1/monitoring",
        verb=ChangeVerb.UPDATE,
        target="edge-eu:site1",
        old_revision="v1.1.0",
        revision="v1.2.0",
    ),
    RequestVariant(
        name="site2",
        path="site2/monitoring",
        verb=ChangeVerb.UPDATE,
        old_revision="v1.0.0",
        revision="v1.2.0",
    ),
    RequestVariant(name="site3", path="site3/monitoring", verb=ChangeVerb.ADD, revision="v1.2.0"),
)
CHANGES = (
    PackageChange(("site1/monitoring", "site2/monitoring"), PATCH),
    PackageChange(
        ("site3/monitoring",),
        ("--- /dev/null", "+++ draft/Kptfile", "@@ -0,0 +1 @@", "+kind: Kptfile"),
        omitted="120 more lines in 3 files",
        is_metadata=True,
    ),
)
REPLICAS = PackageDifference(
    (FieldChange("image", "1.0.0", "1.1.0"), FieldChange("replicas", "2", "3")),
    counts=(ChangeCounts("file", changed=1), ChangeCounts("object", changed=1)),
)
CHANGED = (
    ChangedPackages(("site1/monitoring", "site2/monitoring"), REPLICAS),
    ChangedPackages(
        ("site3/monitoring",),
        PackageDifference(counts=(ChangeCounts("file", added=3), ChangeCounts("object", added=2))),
    ),
)
CONFLICTS = (
    RequestConflict(
        ("site1/monitoring",),
        "deployment.yaml: Deployment/web: spec.replicas: upstream 3 stands, local 5 not taken",
        is_decided=False,
    ),
    RequestConflict(
        ("site2/monitoring",),
        "service.yaml: local 80 stands, upstream 8080 not taken",
        is_decided=True,
    ),
)
HOLDS = (
    RequestHold(
        Hold(
            "ApprovalMissing",
            "check sign-off needs 1 more approval; run `fanout approve monitoring --stage prod`",
            who="anybody in group operators",
        )
    ),
    RequestHold(
        Hold("MergeConflict", "1 merge conflict is undecided", who="the maintainers of edge-eu"),
        ("site1/monitoring",),
    ),
    RequestHold(Hold("WindowClosed", "the window is closed", until=MORNING)),
)
CHECKS = (
    RequestCheck(
        CheckResult("policy-ci", Verdict.PASSED, "reported by ci", at=MORNING),
        ("site1/monitoring", "site2/monitoring", "site3/monitoring"),
    ),
    RequestCheck(
        CheckResult("sign-off", Verdict.PENDING, "0 of 1 approvals"),
        ("site1/monitoring", "site3/monitoring"),
    ),
)
UPSTREAM = RequestUpstream(
    repository="https://git.example.com/platform/packages.git",
    package="monitoring",
    revision="v1.2.0",
    commit=COMMIT,
)
PAGES = "https://git.example.com/platform/packages"
SUBJECTS = ("Run three replicas", "Fix the port (#12)", "Add alerts @acme/ops")
HISTORIES = (
    UpstreamHistory(
        package="monitoring",
        old_revision="v1.1.0",
        revision="v1.2.0",
        commits=tuple(
            UpstreamCommit(
                commit=f"{number}{COMMIT[1:]}",
                subject=subject,
                author="Ann Lee",
                url=f"{PAGES}/commit/{number}{COMMIT[1:]}",
            )
            for number, subject in enumerate(SUBJECTS)
        ),
        authors=("Ann Lee", "bob@example.com"),
        omitted=12,
        tag_url=f"{PAGES}/src/tag/monitoring/v1.2.0",
        compare_url=f"{PAGES}/compare/{'a' * 40}...{COMMIT}",
    ),
    UpstreamHistory(
        package="monitoring",
        old_revision="v1.3.0",
        revision="v1.2.0",
        commits=(UpstreamCommit(commit=COMMIT, subject="Undo", author="Ann Lee"),),
        authors=("Ann Lee",),
        is_backward=True,
    ),
)
STAGES = (
    StageLine(
        name="staging",
        revisions=("v1.2.0",),
        readiness="all of 4",
        since=MORNING,
        evidence=(
            StageEvidence("e2e", Verdict.PASSED, "https://ci.example.com/runs/7"),
            StageEvidence("soak-test", Verdict.FAILED),
            StageEvidence("issue", Verdict.PASSED, "https://git.example.com/acme/base/issues/7"),
        ),
    ),
    StageLine(
        name="prod",
        revisions=("v1.1.0", "v1.0.0"),
        readiness="none of 3",
        is_own=True,
    ),
)
SIBLINGS = tuple(
    RequestView(name, number, f"https://git.example.com/acme/{name}/pulls/{number}", state)
    for name, number, state in (("edge-ap", 3, "open"), ("edge-us", 12, "merged"))
)


def build_content() -> RequestContent:
    """A request of three packages with all that a text can have."""
    return RequestContent(
        install="default",
        policy="edge/monitoring",
        stage="prod",
        repository="edge-eu",
        branch="main",
        head_branch="drafts/default/_stages/edge.monitoring/prod",
        variants=VARIANTS,
        changes=CHANGES,
        changed=CHANGED,
        histories=HISTORIES,
        stages=STAGES,
        siblings=SIBLINGS,
        omitted_siblings=3,
        conflicts=CONFLICTS,
        holds=HOLDS,
        checks=CHECKS,
        upstreams=(UPSTREAM,),
        approval_checks=("sign-off",),
    )


def build_many() -> RequestContent:
    """A request of 40 packages that change alike, and wait for nothing."""
    paths = [f"sites/site{number:02}" for number in range(40)]
    return replace(
        build_content(),
        variants=tuple(
            replace(VARIANTS[0], name=path.replace("/", "-"), path=path) for path in paths
        ),
        changes=(PackageChange(tuple(paths), PATCH),),
        changed=(ChangedPackages(tuple(paths), REPLICAS),),
        histories=(replace(HISTORIES[0], commits=HISTORIES[0].commits * 5, is_cut=True),),
        stages=(),
        siblings=(),
        omitted_siblings=0,
        conflicts=(),
        holds=(),
        checks=(),
        approval_checks=(),
    )


def build_removal() -> RequestContent:
    """A request that removes one package, merged by people."""
    return RequestContent(
        install="berlin",
        policy="edge/monitoring",
        repository="edge-eu",
        branch="main",
        head_branch="drafts/berlin/_removals/edge.monitoring/prod",
        variants=(
            RequestVariant(
                name="site1",
                path="site1/monitoring",
                verb=ChangeVerb.REMOVE,
                old_revision="v1.1.0",
                detail="its target is not selected any more",
            ),
        ),
        merge=MergeMethod.MANUAL,
    )


def build_hostile(name: str) -> RequestContent:
    """A request in which every text of others is a hostile name."""
    variant = RequestVariant(
        name=name,
        path=name,
        verb=ChangeVerb.MOVE,
        target=f"{name} ",
        old_path=name,
        old_revision=name,
        revision=name,
        detail=name,
    )
    return RequestContent(
        install=name,
        policy=f"{name}/{name}",
        stage=name,
        repository=name,
        branch=name,
        head_branch=name,
        variants=(variant, replace(variant, name="site2")),
        changes=(
            PackageChange((name,), (name, f"+{name}", f" {name}"), omitted=name),
            PackageChange((name,), (name,), is_metadata=True),
        ),
        changed=(
            ChangedPackages(
                (name, "site2"),
                PackageDifference((FieldChange("image", name, f"{name}x", (name,)),)),
            ),
            ChangedPackages((name,), PackageDifference((FieldChange("image", "", f"{name}x"),))),
        ),
        conflicts=(
            RequestConflict((name,), name, is_decided=False),
            RequestConflict((name,), f"upstream {name}, local {name}.", is_decided=True),
        ),
        holds=(
            RequestHold(Hold("Suspended", name, who=name)),
            RequestHold(Hold("Suspended", f"run `{name}` ({name}), {name}:{name}"), (name,)),
        ),
        checks=(RequestCheck(CheckResult(name, Verdict.PENDING, f"{name}: {name}"), (name,)),),
        upstreams=(RequestUpstream(repository=name, package=name, revision=name, commit=name),),
        approval_checks=(name,),
        histories=(
            UpstreamHistory(
                package=name,
                old_revision=name,
                revision=name,
                commits=(UpstreamCommit(commit=name, subject=name, author=name),),
                authors=(name,),
            ),
        ),
        stages=(
            StageLine(
                name=name,
                revisions=(name,),
                evidence=(StageEvidence(name, Verdict.PASSED, name),),
            ),
        ),
        siblings=(RequestView(name, 1, "", "open"),),
    )
