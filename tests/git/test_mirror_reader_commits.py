"""Commits that git stores and libgit2 cannot parse are no damage of the mirror."""

import pytest

from fanout.errors import InvalidInput

PEOPLE = {
    "a date beyond all numbers": "a <a@b> 99999999999999999999 +0000",
    "no address": "a",
}


def forge(bare, person: str, *parents: str) -> str:
    tree = bare.git("rev-parse", "main^{tree}").strip()
    lines = [f"tree {tree}", *(f"parent {it}" for it in parents)]
    text = "\n".join([*lines, f"author {person}", f"committer {person}", "", "forged\n"])
    line = ("hash-object", "--literally", "-t", "commit", "-w", "--stdin")
    return bare.git(*line, stdin=text.encode()).strip()


@pytest.mark.parametrize("person", PEOPLE.values(), ids=list(PEOPLE))
def test_a_commit_that_cannot_be_parsed_is_no_damage_of_the_mirror(downstream, bare, person):
    first = bare.git("rev-parse", "main").strip()
    forged = forge(bare, person, first)
    tree = bare.git("rev-parse", "main^{tree}").strip()
    later = bare.git("commit-tree", tree, "-p", forged, "-m", "later").strip()
    bare.git("update-ref", "refs/heads/main", later)
    sibling = bare.git("commit-tree", tree, "-m", "sibling").strip()
    bare.git("update-ref", "refs/heads/sibling", sibling)
    downstream.look()
    with downstream.store.reader(bare.remote) as reader:
        with pytest.raises(InvalidInput, match=f"commit {forged} cannot be read: failed to parse"):
            reader.commit(forged)
        # Looked for in the whole history, because it is no ancestor: a sibling of the first commit.
        with pytest.raises(InvalidInput, match=f"the history of commit {later} cannot be read"):
            reader.contains(later, sibling)
        with pytest.raises(InvalidInput, match=f"the history of commit {later} cannot be read"):
            reader.merge_base(sibling, later)


def test_a_commit_of_a_date_that_no_later_commit_can_have_is_named(downstream, bare):
    forged = forge(bare, "a <a@b> 9999999999999 +0000")
    bare.git("update-ref", "refs/heads/main", forged)
    downstream.look()
    refusal = pytest.raises(InvalidInput, match=f"commit {forged} cannot be read: 9999999999999 ")
    with downstream.store.reader(bare.remote) as reader, refusal:
        reader.commit(forged)
