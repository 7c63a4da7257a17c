"""Sealed objects and files are one value: one side whole, and one conflict at most."""

import re

import pytest
from package.merge.test_package_update import merge, package, thing

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.package.merge.merge_conflicts import ConflictChoices
from fanout.package.merge.package_update import KptUpdateStrategy, merge_packages, update_package

KEPT = "data:\n  a: {a}\n  b: {b}\nkind: Secret\nmetadata:\n  name: db\n"


def sealed(a="ENC[AES256_GCM,data:a1]", b="ENC[AES256_GCM,data:b1]", mac="m1", more=""):
    """A Secret that SOPS encrypted."""
    return (
        f"apiVersion: v1\n{KEPT.format(a=a, b=b)}{more}"
        "sops:\n  age:\n  - recipient: age1x\n    enc: |\n"
        "      -----BEGIN AGE ENCRYPTED FILE-----\n      eA==\n"
        "      -----END AGE ENCRYPTED FILE-----\n"
        '  lastmodified: "2026-01-01T00:00:00Z"\n'
        f"  mac: ENC[AES256_GCM,data:{mac}]\n  version: 3.9.0\n"
    )


ORIGIN = sealed()
UPSTREAM = sealed(a="ENC[AES256_GCM,data:a2]", mac="m2")
LOCAL = sealed(b="ENC[AES256_GCM,data:b3]", mac="m3")
SIGNED = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  annotations:\n"
    "    {annotation}: {signature}\ndata:\n  a: {a}\n  b: {b}\n"
)
DOTENV = "A=ENC[AES256_GCM,data:{a}]\nX=1\nB=ENC[AES256_GCM,data:{b}]\nY=1\nsops_mac=ENC[{m}]\n"
INI = "[x]\na = ENC[{a}]\ny = 1\nb = ENC[{b}]\nz = 1\n[sops]\nmac = ENC[AES256_GCM,data:{m}]\n"
BINARY = (
    '{{\n\t"data": "ENC[{a}]",\n\t"x": 1,\n\t"y": "{b}",\n\t"z": 1,\n'
    '\t"sops": {{\n\t\t"mac": "ENC[{m}]"\n\t}}\n}}\n'
)
VAULT = "$ANSIBLE_VAULT;1.1;AES256\n{a}\n00\n{b}\n01\n{m}\n"
PGP = "-----BEGIN PGP MESSAGE-----\n\n{a}\n00\n{b}\n01\n={m}\n-----END PGP MESSAGE-----\n"
AGE = PGP.replace("PGP MESSAGE", "AGE ENCRYPTED FILE")
VALUES = "a: ENC[{a}]\nx: 1\nb: ENC[{b}]\nsops:\n  mac: {m}\n"


def filled(form):
    return [form.format(a=a, b=b, m=m) for a, b, m in ("111", "212", "133")]


def inside(form):
    """The text as a value of a ConfigMap."""
    block = "".join(f"    {line}\n" for line in form.splitlines())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  f: |\n{block}"


def in_two_documents(form):
    return f"{form}---\n{form.replace('name: c', 'name: d')}"


TWO = in_two_documents(
    "apiVersion: v1\nkind: X\nmetadata:\n  name: c\ndata:\n  a: {a}\n  x: 1\n  b: {b}\n"
    "sops:\n  mac: {m}\n"
)
LIST = (
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: X\n  metadata: {{name: c}}\n"
    "  data: {{v: {a}}}\n- apiVersion: v1\n  kind: X\n  metadata: {{name: d}}\n  data: {{v: {b}}}\n"
    "sops: {{mac: {m}}}\n"
)
FORMS = {
    "sops in YAML": ("a.yaml", [ORIGIN, UPSTREAM, LOCAL]),
    "sops in documents of one file": ("a.yaml", filled(TWO)),
    "sops in a List": ("a.yaml", filled(LIST)),
    "sops in values": ("values.yaml", filled(VALUES)),
    "sops in JSON": (
        "a.json",
        filled(
            '{{"apiVersion": "v1", "kind": "X", "metadata": {{"name": "c"}},\n'
            ' "a": "{a}",\n "x": 1,\n "b": "{b}",\n "sops": {{"mac": "{m}"}}}}\n'
        ),
    ),
    "sops of a binary": ("a.bin", filled(BINARY)),
    "sops of a binary in JSON": ("a.json", filled(BINARY)),
    "sops of dotenv": (".env", filled(DOTENV)),
    "sops of ini": ("a.ini", filled(INI)),
    "ansible-vault": ("vault.txt", filled(VAULT)),
    "OpenPGP": ("a.asc", filled(PGP)),
    "age": ("a.age", filled(AGE)),
    "ansible-vault in a value": ("a.yaml", filled(inside(VAULT))),
    "OpenPGP in a value": ("a.yaml", filled(inside(PGP))),
    "age in a value": ("a.yaml", filled(inside(AGE))),
    **{
        f"signed by {annotation}": (
            "a.yaml",
            [
                SIGNED.format(annotation=annotation, signature=s, a=a, b=b)
                for s, a, b in ("s11", "t21", "u12")
            ],
        )
        for annotation in ("cosign.sigstore.dev/signature", "tekton.dev/signature")
    },
}


@pytest.mark.parametrize("side", [*ConflictWinner, None])
@pytest.mark.parametrize(("path", "texts"), FORMS.values(), ids=FORMS.keys())
def test_a_sealed_value_changed_by_both_sides_is_taken_whole_from_a_side(path, texts, side):
    sides = [{path: text} for text in texts]
    files, conflicts = merge(*sides, choices=ConflictChoices(default_side=side))
    assert files == (sides[2] if side is ConflictWinner.LOCAL else sides[1])
    assert len(conflicts) == 1


@pytest.mark.parametrize(("path", "texts"), FORMS.values(), ids=FORMS.keys())
def test_a_sealed_value_changed_by_a_single_side_follows_that_side(path, texts):
    origin, upstream, local = ({path: text} for text in texts)
    assert merge(origin, upstream, origin) == (upstream, [])
    assert merge(origin, origin, local) == (local, [])
    assert merge(origin, local, local) == (local, [])


@pytest.mark.parametrize("strategy", KptUpdateStrategy)
def test_no_strategy_mixes_sealed_values(strategy):
    origin, upstream, local = (package({"s.yaml": text}) for text in (ORIGIN, UPSTREAM, LOCAL))
    if strategy is KptUpdateStrategy.FAST_FORWARD:
        local = origin
    files = update_package(strategy, origin, upstream, local).files
    assert files["s.yaml"][1] in (UPSTREAM.encode(), LOCAL.encode())


def test_the_conflict_says_that_it_is_about_a_sealed_value():
    sides = [package({"s.yaml": text}) for text in (ORIGIN, UPSTREAM, LOCAL)]
    [conflict] = merge_packages(*sides).conflicts
    assert conflict.where.object == "Secret/db"
    assert conflict.where.field == ""
    assert "sealed by SOPS" in str(conflict)
    assert "sealed by SOPS" in conflict.resolution


def test_a_comment_of_one_side_is_not_put_into_the_other():
    sides = [{"s.yaml": t} for t in (ORIGIN, UPSTREAM, LOCAL.replace("  b:", "  # mine\n  b:"))]
    files, conflicts = merge(*sides)
    assert files == sides[1]
    assert len(conflicts) == 1


@pytest.mark.parametrize("change", ["added on both sides", "sealed upstream", "opened upstream"])
def test_a_seal_of_one_side_counts(change):
    plain = [KEPT.format(a=a, b=b) for a, b in ("11", "21", "12")]
    plain = [f"apiVersion: v1\n{text}" for text in plain]
    origin, upstream, local = {
        "added on both sides": (None, UPSTREAM, LOCAL),
        "sealed upstream": (plain[0], UPSTREAM, plain[2]),
        "opened upstream": (ORIGIN, plain[1], LOCAL),
    }[change]
    sides = [{"s.yaml": text} if text else {"x": "1"} for text in (origin, upstream, local)]
    files, conflicts = merge(*sides)
    assert files["s.yaml"] == upstream
    assert len(conflicts) == 1


def test_an_object_beside_a_sealed_one_merges_as_ever():
    def two(a, text):
        return {"a.yaml": f"{thing('c', a)}---\n{text}"}

    files, conflicts = merge(two(1, ORIGIN), two(2, ORIGIN), two(1, LOCAL))
    assert files == two(2, LOCAL)
    assert conflicts == []


def test_a_sealed_object_that_upstream_moves_keeps_the_whole_of_a_side():
    sides = {"s.yaml": ORIGIN}, {"t.yaml": UPSTREAM}, {"s.yaml": LOCAL}
    files, conflicts = merge(*sides, choices=ConflictChoices(default_side=ConflictWinner.LOCAL))
    assert files == {"t.yaml": LOCAL}
    assert len(conflicts) == 1


def test_a_sealed_object_that_upstream_removes_is_kept_with_a_local_change():
    sides = {"s.yaml": ORIGIN, "x": "1"}, {"x": "2"}, {"s.yaml": LOCAL, "x": "1"}
    files, conflicts = merge(*sides)
    assert files == {"s.yaml": LOCAL, "x": "2"}
    assert len(conflicts) == 1


def test_a_field_named_sops_is_no_seal():
    form = "a: {a}\nx: 1\nb: {b}\nsops:\n  enabled: {m}\n"
    texts = [form.format(a=a, b=b, m=1) for a, b in ("11", "21", "12")]
    files, conflicts = merge(*({"values.yaml": text} for text in texts))
    assert re.sub(r"\n", " ", files["values.yaml"]) == "a: 2 x: 1 b: 2 sops:   enabled: 1 "
    assert conflicts == []
