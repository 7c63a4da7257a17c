"""A law: in each draft that fanout writes, the Kptfile names the revision that was rendered."""

from hypothesis import given
from hypothesis import strategies as st

from fanout.package.field_edits import Edit
from fanout.package.kptfile import UpstreamLock, find_kptfile, upstream_edits
from fanout.package.manifest import Manifest
from fanout.plan.edits.edit_merge import merge_edits

KPTFILE = b"""\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web # ours
info:
  description: one
"""
PLACES = [("upstream",), ("upstreamLock",)] + [
    (section, "git", name) for section in ("upstream", "upstreamLock") for name in ("ref", "commit")
]
TEXTS = st.sampled_from(["v1", "v2", "v3", "0" * 40, "main"])
CHANGES = st.dictionaries(st.sampled_from(PLACES), TEXTS | st.none(), max_size=4)


def at(number: int) -> bytes:
    """The Kptfile as it is rendered for a revision."""
    manifest = Manifest.parse(KPTFILE, "Kptfile")
    upstream = UpstreamLock("https://git.example.com/b.git", "web", f"{number}" * 40, f"v{number}")
    return manifest.apply_edits_to_text(upstream_edits(find_kptfile(manifest), upstream))


def changed(kptfile: bytes, changes, description: str) -> bytes:
    """What a person makes of it: these fields with other texts, or without them."""
    for path, text in [*sorted(changes.items()), (("info", "description"), description)]:
        manifest = Manifest.parse(kptfile, "Kptfile")
        fields = find_kptfile(manifest).value
        for name in path[:-1]:
            fields = fields.get(name, {}) if isinstance(fields, dict) else {}
        if isinstance(fields, dict) and path[-1] in fields:
            edit = Edit(0, path) if text is None else Edit(0, path, text)
            kptfile = manifest.apply_edits_to_text([edit])
    return kptfile


def files(kptfile: bytes):
    return {"Kptfile": ("100644", kptfile)}


@given(CHANGES, CHANGES, st.sampled_from([1, 2, 3]))
def test_a_draft_names_the_rendered_revision_despite_edits_of_people(ours, drafted, rendered):
    published = files(at(2)), files(changed(at(2), ours, "theirs"))
    draft = files(at(3)), files(changed(at(3), drafted, "one"))
    merged = merge_edits(files(at(rendered)), [published, draft])
    document = find_kptfile(Manifest.parse(merged.files["Kptfile"][1], "Kptfile"))
    expected = find_kptfile(Manifest.parse(at(rendered), "Kptfile")).value
    assert document.value["upstream"] == expected["upstream"]
    assert document.value["upstreamLock"] == expected["upstreamLock"]
    assert document.value["info"]["description"] == "theirs"
    assert merged.conflicts == ()
