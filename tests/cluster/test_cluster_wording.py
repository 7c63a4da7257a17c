"""The sentences about files, secrets and records, as people read them."""

from operator import itemgetter

import pytest

from fanout.cluster import cluster_wording as wording

SENTENCES = [
    # Files and declared objects.
    (wording.describe_unreadable_file("Permission denied"), "cannot be read: Permission denied"),
    (wording.describe_unlisted_directory("Permission denied"),
     "cannot be listed: Permission denied"),
    (wording.describe_declared_record("Evidence"),
     "Evidence is a record and cannot be declared in a file"),
    (wording.format_use_remedy("fanout report"), "use fanout report"),
    (wording.describe_wrong_type(True), "expected a string, got boolean `true`"),
    (wording.describe_boolean_key("on"), "expected a string as key, got boolean `on`"),
    (wording.describe_second_declaration("default", "a.yaml:3"),
     "is already declared in namespace default at a.yaml:3; none of them is used"),
    (wording.describe_repeated_declaration("default", []),
     "is declared more than once in namespace default; none of them is used"),
    (wording.describe_repeated_declaration("default", ["b.yaml", "c.yaml"]),
     ("is declared more than once in namespace default, also in b.yaml, c.yaml; none of them is"
      " used")),
    (wording.describe_repeated_object("Repository/edge", 1),
     "Repository/edge, which is declared more than once"),
    (wording.describe_repeated_object("Repository/edge", 2),
     "Repository/edge, which is declared 2 times"),
    # Secrets.
    (wording.describe_secret("edge", wording.EMPTY_CONTENT), "secret 'edge' is empty"),
    (wording.describe_missing_fields("/s/edge"),
     "has neither a file password nor a file key in /s/edge"),
    (wording.describe_binary_secret("/s/edge"), "is not UTF-8 text (/s/edge)"),
    (wording.format_secret_remedy("X", None), "set the environment variable X"),
    (wording.format_secret_remedy("X", "/s/edge"),
     "set the environment variable X, or write the file /s/edge"),
    # Records and status.
    (wording.describe_wrong_kind(["Evidence", "Decision"]), "is none of Evidence, Decision"),
    (wording.describe_invalid_record(["spec.x: unknown"]), "is not valid: spec.x: unknown"),
    (wording.describe_other_policy("default/web"), "belongs to policy default/web"),
    (wording.describe_keyless_line(2), "has no key in line 2"),
    (wording.describe_misplaced_key("a", 2), "has 'a' twice or in the wrong file (line 2)"),
    (wording.describe_invalid_json("in line 2 ", "x"), "in line 2 is not JSON: x"),
    (wording.describe_large_file(2048), "has more than 2,048 bytes"),
    (wording.describe_unreadable_status("status/00.jsonl", wording.LINK),
     "status/00.jsonl is a symlink; restore it from an earlier commit"),
    (wording.describe_unreadable_record("records/a.json", wording.CHANGED_RECORD),
     "records/a.json was changed after it was recorded; restore it, or remove it with git"),
    (wording.describe_blocked_directory("records", "records is a file"),
     "records: records is a file; move it away"),
    (wording.describe_unreadable_branch("fanout/x", "status/00.jsonl is a symlink"),
     "cannot read the status on branch fanout/x: status/00.jsonl is a symlink"),
    (wording.describe_missing_repository("/r"), "there is no records repository /r"),
    (wording.describe_empty_repository("/r"), "/r has no records of this installation"),
    (wording.describe_invalid_log("sweeps.json on branch fanout/x of /r", "x"),
     "cannot read sweeps.json on branch fanout/x of /r: x"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
