"""The sentences of a pass, as people read them."""

from operator import itemgetter

import pytest

from fanout.errors import Denied
from fanout.reconcile import reconcile_wording as wording

AMS, URL = "edge:sites/ams", "/git/edge"
TAG = "sites/ams/v1"
TAKEN = wording.describe_other_publisher(AMS, "default/web")

SENTENCES = [
    # Adoption, edits and drafts.
    (wording.describe_other_clone(AMS, "/web", "other", "web", URL),
     ("edge:sites/ams is a clone of /web in other, but the upstream of its variant is web in"
      " /git/edge; choose another path, or correct its upstreamLock")),
    (wording.describe_unadoptable(AMS, "no Kptfile"),
     "edge:sites/ams cannot be adopted: no Kptfile"),
    (wording.describe_unknown_lock("abab", "web", URL),
     "no branch or tag of /git/edge contains commit abab with web"),
    (wording.describe_cloned_state("/web", "other"), "is a clone of /web in other"),
    (wording.describe_locked_state("v1"), "has the Kptfile of v1"),
    (wording.describe_equal_state(f"tag {TAG}"), "has the content of tag sites/ams/v1"),
    (wording.describe_edited_package(AMS),
     "edge:sites/ams was edited outside fanout; the edits are carried into the next draft"),
    (wording.describe_remaining_branch("drafts/x", "edge"),
     ("branch drafts/x of edge is published but still exists; each sweep tries to delete it. If the"
      " server denies deletions, allow them below drafts/, or delete the branch by hand")),
    (wording.describe_lost_renderings("fanout/default/rendered", 2, 0),
     ("branch fanout/default/rendered lacks 2 published packages, so edits cannot be told from"
      " upstream content; push the branch again from a clone that has it")),
    (wording.describe_lost_renderings("fanout/default/rendered", 2, 1),
     ("branch fanout/default/rendered lacks 2 published packages, so edits cannot be told from"
      " upstream content; 1 with merged edits will be held at their next draft; push the branch"
      " again from a clone that has it")),
    (wording.remind_lost_renderings("web"),
     "the vendor branch lacks published packages; run `fanout explain web`"),
    (wording.describe_accepted_conflicts(1),
     "its draft is published with 1 merge conflict that a person accepted"),
    # Tags and repositories.
    (wording.describe_archived_repository("ann/edge", "git.example.com"),
     "repository ann/edge is archived on git.example.com"),
    (wording.describe_moved_publication(TAG, "edge", "abab", "v1", "git push"),
     ("tag sites/ams/v1 of edge points to abab, not to the publication of v1; delete the tag and,"
      " in a clone of edge, run `git push`")),
    (wording.describe_lost_publication(TAG, "edge", "v1", "git push"),
     ("tag sites/ams/v1 is missing from edge, but v1 was published with it; in a clone of edge,"
      " run `git push`")),
    (wording.describe_lost_earlier_publication(TAG, "edge", "git push"),
     ("tag sites/ams/v1 of an earlier publication is missing from edge; in a clone of edge, run"
      " `git push`")),
    (wording.format_push_command("abab", "refs/tags/x"), "git push origin abab:refs/tags/x"),
    (wording.describe_lost_upstream_tag("web/v1", "blueprints", "v1", "abab"),
     ("tag web/v1 is missing from blueprints, but v1 is published; restore the tag (abab) or"
      " release a newer revision, because automation never downgrades")),
    (wording.describe_moved_tag("web/v1", "abab", "cdcd"),
     "tag web/v1 pointed to abab when it was used, and now points to cdcd"),
    (wording.describe_missing_tag(URL, "web/v1"),
     "repository /git/edge has no tag web/v1"),
    (wording.describe_unmatched_rule(URL, "web", ">=5"),
     "no tag web/v<N> of repository /git/edge matches the range >=5"),
    (wording.describe_unmatched_rule(URL, "web", ""),
     ("no tag web/v<N> of repository /git/edge matches `latest`, which excludes"
      " prereleases")),
    (wording.describe_missing_commit(URL, "abab"),
     "repository /git/edge has no commit abab on any branch"),
    (wording.describe_missing_directory("web", "v1 (abab)", URL, "web is a file"),
     "/git/edge has no directory web at v1 (abab): web is a file"),
    (wording.describe_second_branch(URL, "Repository default/edge", "main"),
     ("Repository default/edge has the same URL /git/edge and branch main; a"
      " repository is published to on one branch")),
    (wording.describe_unknown_repository("edge", "default"),
     "there is no Repository edge that namespace default may use"),
    (wording.describe_broken_repository("edge"), "Repository edge has errors and cannot be used"),
    (wording.describe_foreign_request(7, "main", "drafts/x"),
     "pull request 7 from drafts/x to main was not opened by fanout and is ignored"),
    (wording.describe_unknown_reviewers(URL, ["ann", "bob"]),
     "/git/edge: cannot request a review from ann, bob"),
    (wording.describe_missing_hold_label(URL, Denied("no right", reason="ForgeDenied")),
     ("/git/edge: cannot create the label fanout/hold, which holds pull requests: no right;"
      " or create it by hand")),
    # Paths and moves.
    (wording.describe_other_branches("no records", "a/b", URL, 2),
     "no records; /git/edge has no branch a/b, but 2 with other names"),
    (wording.describe_other_tenant(AMS, "ams"),
     ("edge:sites/ams holds a package that was published for a policy in another namespace; choose"
      " another path for ams")),
    (wording.describe_two_addresses(TAKEN, ["a/edge", "b/edge"], ["/x", "/y"]),
     ("edge:sites/ams holds a package that was published for default/web: a/edge and b/edge are one"
      " repository with two URLs, /x and /y; use one URL in both, and change downstream.package of"
      " one variant")),
    (wording.describe_other_owner(TAKEN, "ams"),
     ("edge:sites/ams holds a package that was published for default/web and was not removed;"
      " choose another path for ams, or delete the package from the branch")),
    (wording.describe_foreign_clone(AMS, "/web", "other", "ams"),
     ("edge:sites/ams holds a clone of /web in other that was not published for ams; choose another"
      " path, or delete the package from the branch")),
    (wording.describe_unrecorded_move("ams", AMS, "core:ams"),
     ("ams moves from edge:sites/ams to core:ams after the publication at edge:sites/ams is"
      " recorded")),
    (wording.describe_unreachable_path("ams", "sites/ams", URL, ""),
     ("ams is at sites/ams in /git/edge, for which the namespace has no"
      " Repository; declare the Repository with this URL and branch so that the package can move")),
    (wording.describe_unreachable_path("ams", "sites/ams", URL, "no server"),
     ("ams is at sites/ams in /git/edge: no server; declare the Repository with"
      " this URL and branch so that the package can move")),
    (wording.describe_displaced_variant("ams", "sites/ams", "variant ber"),
     ("the former path sites/ams of ams belongs to variant ber now, but ams is not at its new path"
      " yet; merge its draft by hand")),
    (wording.describe_edited_leftover("ams", AMS),
     ("edge:sites/ams, the former path of ams, was edited since; copy the edits to its present path"
      " and remove the package, or choose another path")),
    # Records.
    (wording.describe_found_branch("there is no repository /r", URL, "fanout/x"),
     ("there is no repository /r, but /git/edge has branch fanout/x of this"
      " installation")),
    (wording.describe_lost_policy_records(URL, "its draft x"),
     "the policy has no records, but /git/edge has its draft x"),
    (wording.describe_reset_branch("branch x of /r", "abab", "; missing: Decision d1"),
     ("branch x of /r was reset: it does not contain commit abab, its last known head; missing:"
      " Decision d1")),
    (wording.describe_reset_records("publication x is missing", 0, "abab"),
     "publication x is missing: the records were reset to an older state (commit abab)"),
    (wording.describe_reset_records("publication x is missing", 2, "abab"),
     ("publication x is missing (and 2 more): the records were reset to an older state"
      " (commit abab)")),
    (wording.describe_unrecorded_publication(TAG, "abab", "edge"),
     "publication sites/ams/v1 (abab) of edge is missing from the records"),
    (wording.format_reset_remedy("restore the branch", "default/web"),
     ("restore the branch; or, to continue from what the repositories have published, run"
      " `fanout accept-records web -n default --reason WHY`")),
    (wording.describe_undeclared_policy("default", "web", ["1 published variant", "2 released"]),
     ("policy default/web is not declared but has 1 published variant and 2 released; declare it"
      " again, or, to remove it, declare it with targets that match nothing and run"
      " `fanout remove web --all-gone --reason WHY`")),
    (wording.describe_recorded_policy("default", "web"),
     "policy default/web has records but is not declared"),
    (wording.describe_undeclared_variant("default", "own", AMS, is_published=True),
     ("PackageVariant default/own is not declared, but its package is still published"
      " (edge:sites/ams) and is not updated; declare it again, or run"
      " `fanout remove own --reason WHY`")),
    (wording.describe_undeclared_variant("default", "own", AMS, is_published=False),
     ("PackageVariant default/own is not declared, but it has records (edge:sites/ams) and is not"
      " updated; declare it again, or run `fanout remove own --reason WHY`")),
    # Removal.
    (wording.describe_orphans(2), "2 variants without a target"),
    (wording.describe_unusable_declaration("a.yaml"),
     "a target may be in a declaration that cannot be used: a.yaml"),
    (wording.describe_unreadable_declaration("own", "a.yaml"),
     "own may be declared in a.yaml, which cannot be read"),
    (wording.describe_unusable_place("ams", "sites/ams", URL),
     "ams is at sites/ams in /git/edge, for which the namespace has no Repository"),
    (wording.describe_new_edits("the package sites/ams"),
     "the package sites/ams changed during the removal"),
    (wording.describe_kept_branch("drafts/x"), "branch drafts/x was not deleted"),
    (wording.describe_present_target("ams"),
     "ams left no other package, and its target still exists: it would be created again"),
    (wording.describe_missing_orphan("default/web", "ams"),
     "default/web has no variant ams without a target"),
    (wording.describe_orphan("ams", [AMS, "core:ams"], wording.REMOVED_NEXT),
     ("variant ams (edge:sites/ams, core:ams) has no target any more; the next sweep removes it")),
    (wording.describe_kept_orphan("web", "ams"),
     "to remove it, run `fanout remove web ams --reason WHY`"),
    (wording.describe_requested_orphan("drafts/x", ""),
     "it is removed by the pull request of drafts/x"),
    (wording.describe_requested_orphan("drafts/x", "waits"),
     "it is removed by the pull request of drafts/x; waits"),
    (wording.describe_held_orphan("waits"), "it stays: waits"),
    (wording.append_actor("it waits", ""), "it waits"),
    (wording.append_actor("it waits", "ann"), "it waits; who can act: ann"),
    # Dependencies.
    (wording.describe_cycle(["a", "b", "a"]), "variants form a cycle: a → b → a"),
    (wording.describe_unknown_dependency("ams"), "waits for variant ams, which was not evaluated"),
    (wording.describe_unready_dependency("ams", "Held", "", ""),
     "waits for variant ams, which is Held"),
    (wording.describe_unready_dependency("ams", "Verifying", "v1", "check e2e is pending"),
     "waits for variant ams, which is Verifying at v1: check e2e is pending"),
    (wording.describe_missing_dependency("variant", "ams"),
     "waits for variant ams, which does not exist"),
    (wording.describe_failed_dependency("x", "web", "no path"),
     "waits for target x of web, which has no variant: no path"),
    (wording.describe_missing_target("x", "web", "did you mean y?"),
     "waits for target x, which UpstreamPolicy web does not have; did you mean y?"),
    # Pull requests.
    (wording.format_missing_records([], 0), "; no record is missing, only status"),
    (wording.format_missing_records(["A", "B"], 0), "; missing: A; B"),
    (wording.format_missing_records(["A", "B"], 3), "; missing: A; B and 3 more"),
    (wording.describe_deleted_branch("refs/heads/drafts/x"),
     "drafts/x was deleted during the pass"),
    (wording.warn_default_text("a.yaml:3", "ExpressionError", "no text"),
     ("a.yaml:3: ExpressionError: no text; the pull request has the built-in text until this is"
      " corrected")),
    (wording.format_omitted_parts(0, 0), ""),
    (wording.format_omitted_parts(1, 0), "1 more line"),
    (wording.format_omitted_parts(305, 19), "305 more lines and 19 more files"),
    (wording.format_omitted_files(14), "14 more files of each"),
    (wording.format_omitted_packages(2), "the changes of 2 packages"),
    (wording.format_large_file(300_000), "300,000 bytes, too long to compare"),
    # Pins and promotion.
    (wording.describe_unreadable_promotion("a.yaml"),
     ("automatic promotion is off while a.yaml cannot be read: a PromotionPolicy can restrict what"
      " others allow; correct it")),
    (wording.warn_default_message("a.yaml:3", "no text"),
     "a.yaml:3: no text; the commit has the default message until this is corrected"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
