"""Laws of the three-way merge on generated packages."""

from collections import Counter

from hypothesis import given
from package.merge.generated import apart, facts, lost, objects, triples

from fanout.package.merge.merge_units import format_identity
from fanout.package.merge.package_update import merge_packages


def comments(files):
    """All comments with how often they are there; the packages have no `#` in values."""
    lines = [line for _, data in files.values() for line in data.decode().splitlines()]
    return Counter(line[line.index("#") :] for line in lines if "#" in line)


@given(triples())
def test_changes_of_upstream_alone_are_taken_byte_for_byte(sides):
    origin, upstream, _ = sides
    result = merge_packages(origin, upstream, {**origin, "mine.txt": ("100644", b"x")})
    assert result.files == {**upstream, "mine.txt": ("100644", b"x")}
    assert not result.conflicts


@given(triples())
def test_local_changes_alone_stay_byte_for_byte(sides):
    origin, _, local = sides
    result = merge_packages(origin, {**origin, "theirs.txt": ("100644", b"x")}, local)
    assert result.files == {**local, "theirs.txt": ("100644", b"x")}
    assert not result.conflicts


@given(triples())
def test_the_result_can_be_read_and_has_no_object_twice(sides):
    objects(merge_packages(*sides).files)


@given(triples())
def test_no_change_of_a_side_is_lost_without_a_conflict(sides):
    origin, upstream, local = sides
    result = merge_packages(origin, upstream, local)
    disputed = {conflict.where.object for conflict in result.conflicts}
    for side in (upstream, local):
        for identity, wrong in lost(origin, side, result.files).items():
            assert format_identity(identity) in disputed or identity[1] in disputed, wrong


@given(triples())
def test_merging_again_changes_nothing(sides):
    origin, upstream, local = sides
    once = merge_packages(origin, upstream, local)
    assert merge_packages(origin, upstream, once.files).files == once.files


@given(triples())
def test_sides_commute_where_nothing_is_disputed(sides):
    origin, upstream, local = sides
    one = merge_packages(origin, upstream, local)
    other = merge_packages(origin, local, upstream)
    if one.conflicts or other.conflicts:
        return
    first, second = objects(one.files), objects(other.files)
    assert first.keys() == second.keys()
    for identity, value in first.items():
        assert set(facts(value)) == set(facts(second[identity]))


@given(apart())
def test_edits_of_different_files_commute_and_all_arrive(sides):
    origin, upstream, local, both = sides
    for one, other in ((upstream, local), (local, upstream)):
        result = merge_packages(origin, one, other)
        assert (result.files, result.conflicts) == (both, ())


@given(triples())
def test_files_left_unread_change_no_result(sides):
    """A file that cannot be read, and that upstream changed, has all files read."""
    unread = [
        {**side, "zz.yaml": ("100644", text)}
        for side, text in zip(sides, (b"{{", b"{{{", b"{{"), strict=True)
    ]
    result, whole = merge_packages(*sides), merge_packages(*unread)
    assert {**result.files, "zz.yaml": ("100644", b"{{{")} == whole.files
    assert result.conflicts == whole.conflicts


@given(triples())
def test_no_comment_of_this_side_goes_without_a_word(sides):
    origin, upstream, local = sides
    result = merge_packages(origin, upstream, local)
    before, mine, after = map(comments, (origin, local, result.files))
    noted = Counter(note.split('"')[1] for note in result.notes if "the comment" in note)
    assert not mine - before - after - noted
