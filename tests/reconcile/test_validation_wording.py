"""The sentences of findings that need several objects, as people read them."""

from operator import itemgetter

import pytest

from fanout.reconcile import validation_wording as wording

AVAILABLE = wording.format_available(["stage", "target"])

SENTENCES = [
    (wording.describe_closed_windows("denied on Fridays"),
     "nothing is ever published: denied on Fridays"),
    (wording.describe_targets(["a"], 0, "no path"), "target a: no path"),
    (wording.describe_targets(["a", "b"], 3, "no path"), "5 targets: a, b and 3 more: no path"),
    (wording.describe_missing_source("there is no Secret x"),
     ("there is no Secret x; if the injection point is required, the variant is held: declare the"
      " object, or correct the injector")),
    (wording.describe_missing_objects(["a", "b"], "default"),
     "there is no object a or b of any kind in namespace default"),
    (wording.describe_missing_object("ConfigMap", ["a", "b"], "default"),
     "there is no ConfigMap a or b in namespace default"),
    (wording.describe_missing_kind("Cluster", "default"),
     "there is no Cluster in namespace default and none without a namespace"),
    (wording.describe_unmatched_selector(3, "Cluster"),
     "0 of 3 Cluster objects match, so no variant is created"),
    (wording.describe_unmatched_group(2, "dev"),
     "none of 2 variants of stage dev has these labels"),
    (wording.describe_unknown_stage("canary", ["dev", "prod"]),
     "the policy has no stage canary; there are: dev, prod"),
    (wording.describe_unknown_target("web", "x"),
     "UpstreamPolicy web has no target x, so the variant waits"),
    (wording.describe_code("a +", "syntax error"), "a +: syntax error"),
    (wording.describe_unknown_field("stage.x", "stage", "x"), "stage.x: stage has no field x"),
    (wording.describe_unknown_variables("a", ["a"]), "a: a is not a variable here"),
    (wording.describe_unknown_variables("a - b", ["a", "b"]),
     "a - b: a and b are not variables here"),
    (AVAILABLE, "there are stage and target"),
    (wording.format_key_remedy(AVAILABLE),
     "write such keys in brackets, as labels['a/b']; there are stage and target"),
    (wording.format_quote_remedy("prod", AVAILABLE),
     "if it is a string, write \"'prod'\", with both quotes; there are stage and target"),
    (wording.describe_unknown_revision("latest"), "latest is not a revision"),
    (wording.format_revision_remedy(allows_commit=False), "write a version such as v3 or v1.2.3"),
    (wording.format_revision_remedy(allows_commit=True),
     "write a version such as v3 or v1.2.3, or the 40 digits of a commit"),
    (wording.describe_unlisted_host("git.example.com"),
     "the host git.example.com is not configured as a forge"),
    (wording.describe_other_forge("git.example.com", "gitea", "github"),
     "git.example.com is gitea in the FanoutConfiguration, not github"),
    (wording.describe_wrong_value("'yes'", wording.WANTED_CONDITION),
     "yields 'yes', expected true or false"),
    (wording.describe_unknown_policy("web"), "there is no UpstreamPolicy or PackageVariant web"),
    (wording.describe_signing_secret("key"), "secret 'key' has no text to sign with"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
