"""Kargo's objects for tests: small ones, and for each kind one that has every field."""

from fanout.api.field_errors import format_path
from fanout.api.validators.object_validation import validate_object
from fanout.migrate.kargo_fields import KARGO_GROUP
from fanout.migrate.kargo_import import import_kargo_objects

OUT = "https://git.example.com/out.git"
IN = "https://git.example.com/in.git"


def judge(data):
    return validate_object(data)[1]


def kargo(kind, spec, name="one", **metadata):
    meta = {"name": name, **metadata}
    return {"apiVersion": f"{KARGO_GROUP}/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


def writing(url=OUT, branch="main"):
    clone = {"repoURL": url, "checkout": [{"branch": branch, "path": "./out"}]}
    return [{"uses": "git-clone", "config": clone}, {"uses": "git-push", "config": {"path": "out"}}]


def stage(name, *before, steps=None, origin="app", labels=None, spec=None, **sources):
    """A Stage after others, or after none; without steps (`[]`) a control-flow stage."""
    upstream_sources = {"stages": list(before)} if before else {"direct": True}
    request = {
        "origin": {"kind": "Warehouse", "name": origin},
        "sources": {**upstream_sources, **sources},
    }
    spec_fields = {"requestedFreight": [request], **(spec or {})}
    spec_fields["promotionTemplate"] = {"spec": {"steps": writing() if steps is None else steps}}
    return kargo("Stage", spec_fields, name, **({"labels": labels} if labels else {}))


def subscribed(**git):
    subscription = {"repoURL": IN, "branch": "main", "includePaths": ["app"], **git}
    subscription.setdefault("commitSelectionStrategy", "SemVer")
    return kargo("Warehouse", {"subscriptions": [{"git": subscription}]}, "app")


WAREHOUSE = subscribed()


def config(*policies, windows=()):
    spec = {"promotionPolicies": list(policies), "promotionWindows": list(windows)}
    return kargo("ProjectConfig", spec, "project")


def imported(*objects, by=judge):
    """Convert a Warehouse and these objects: results by kind, losses and notes.

    Remarks are (name of the object, field).
    """
    given = [WAREHOUSE, *objects]
    answer = import_kargo_objects(given, by)
    made = {}
    for item in answer.objects:
        made.setdefault(item["kind"], []).append(item)
    lost, noted = [], []
    for index, remark in answer.remarks:
        place = (given[index]["metadata"]["name"], format_path(remark.path))
        if (index, remark.problem) not in _EXPECTED:
            (lost if remark.is_lost else noted).append(place)
    return made, lost, noted


def policy(*objects):
    """The spec of the only policy, and what is lost but for where the package is to be."""
    made, lost, _ = imported(*objects)
    return made["UpstreamPolicy"][0]["spec"], [it for it in lost if not it[1].endswith(".steps")]


# noted about the Warehouse in every answer
_EXPECTED = {
    (index, remark.problem)
    for index, remark in import_kargo_objects([WAREHOUSE, stage("x")], judge).remarks
    if index == 0
}
SOURCES = {
    "direct": False,
    "stages": ["dev", "qa"],
    "availabilityStrategy": "All",
    "requiredSoakTime": "1h",
    "autoPromotionOptions": {"selectionPolicy": "MatchUpstream"},
}
VERIFICATION = {
    "analysisTemplates": [{"name": "smoke", "kind": "AnalysisTemplate"}],
    "args": [{"name": "a", "value": "b"}],
    "analysisRunMetadata": {"labels": {"a": "b"}},
}
GIT = {
    "excludePaths": ["old"],
    "allowTags": "a",
    "allowTagsRegex": ["a"],
    "allowTagsRegexes": ["a"],
    "ignoreTagsRegexes": ["a"],
    "since": "720h",
    "ignoreTags": ["a"],
    "ignoreTagsRegex": ["a"],
    "expressionFilter": "true",
    "strictSemvers": False,
    "discoveryLimit": 20,
    "insecureSkipTLSVerify": True,
    "semverConstraint": "^1.0.0",
}
WINDOW = {
    "name": "w",
    "kind": "Deny",
    "rrule": "FREQ=DAILY",
    "dtstart": "TZID=Europe/Oslo:20260101T220000",
    "dtend": "TZID=Europe/Oslo:20260102T060000",
}
WHOLE = [
    kargo(
        "Warehouse",
        {
            "shard": "eu",
            "interval": "5m0s",
            "freightCreationPolicy": "Manual",
            "freightCreationCriteria": {"expression": "true"},
            "subscriptions": [
                *subscribed(**GIT)["spec"]["subscriptions"],
                {"image": {"repoURL": "registry.example.com/a"}},
                {"chart": {"repoURL": "https://charts.example.com"}},
            ],
        },
        "app",
    ),
    stage("dev", labels={"tier": "dev"}),
    stage("qa"),
    stage(
        "prod",
        steps=[*writing(), {"uses": "http"}],
        spec={
            "shard": "eu",
            "vars": [{"name": "a", "value": "b"}],
            "verification": VERIFICATION,
            "targets": {"selectors": [{}]},
        },
        **SOURCES,
    ),
    config(
        {"stage": "dev", "autoPromotionEnabled": True},
        {"stageSelector": {"name": "glob:pro*"}, "autoPromotionEnabled": True},
        windows=[WINDOW | {"stageSelector": {"name": "glob:*"}, "projectSelector": {"name": "a"}}],
    ),
]
WHOLE[3]["spec"]["promotionTemplate"]["spec"]["vars"] = [{"name": "a", "value": "b"}]
WHOLE[4]["spec"] |= {"webhookReceivers": [{"name": "a"}], "receivers": [{"name": "a"}]}
