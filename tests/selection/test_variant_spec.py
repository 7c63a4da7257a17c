"""Names are the lock: the same identity has the same name, another one another."""

import re

from hypothesis import given
from hypothesis import strategies as st

from fanout.selection.ref_names import draft_ref, tag_ref
from fanout.selection.variant_spec import MAX_NAME_LENGTH, build_variant_name, variant_digest

dns = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
keys = st.text(max_size=80)


@given(dns, dns, keys, keys)
def test_a_name_is_a_name_in_kubernetes_whatever_the_target_is_called(ns, policy, key, readable):
    name = build_variant_name(ns, policy, key, readable)
    assert len(name) <= MAX_NAME_LENGTH
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)


@given(st.lists(st.tuples(dns, dns, keys), min_size=2, max_size=8, unique=True))
def test_different_identities_have_different_names(identities):
    names = {build_variant_name(ns, policy, key, "same") for ns, policy, key in identities}
    assert len(names) == len(identities)


@given(dns, dns, keys, keys, keys)
def test_a_target_that_is_called_otherwise_keeps_its_identity(ns, policy, key, one, other):
    ends = {
        build_variant_name(ns, policy, key, called).rpartition("-")[2] for called in (one, other)
    }
    assert ends == {variant_digest(ns, policy, key)}


def test_parts_of_an_identity_do_not_run_into_each_other():
    assert variant_digest("a", "b-c", "d") != variant_digest("a-b", "c", "d")


def test_a_long_policy_leaves_room_for_the_target_and_the_digest():
    name = build_variant_name("default", "p" * 63, "Cluster/default/ams", "amsterdam")
    assert name.startswith("ppp")
    assert "-amsterdam-" in name


def test_refs_are_those_of_the_design():
    assert draft_ref("default", "sites/ams", "web") == "refs/heads/drafts/default/sites/ams/web"
    assert tag_ref("sites/ams", 3) == "refs/tags/sites/ams/v3"
