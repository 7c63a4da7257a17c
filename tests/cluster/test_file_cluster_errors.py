"""What a directory declares, and everything that is wrong with it, in one run."""

import json
import textwrap
from operator import itemgetter

import pytest

from fanout.cluster.file_cluster import FileCluster

REPOSITORY = """
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: NAME}
spec: {url: "https://git.example.com/NAME.git"}
"""
POLICY = """
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata:
  name: NAME
spec:
  upstream: {repository: edge, package: monitoring, revision: {latest: true}}
  targets:
  - repositories: [{name: edge}]
    template: {stage: dev}
  stages:
  - name: dev
    verification: [{name: e2e, report: {}}]
"""
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: platform}
data: {a: "1"}
"""


def repository(name):
    return REPOSITORY.replace("NAME", name)


def policy(name):
    return POLICY.replace("NAME", name)


def config_map(name):
    return CONFIG_MAP.replace("NAME", name)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode()
        path.write_bytes(data)


def lines(declared, root):
    return [str(fault).replace(f"{root}/", "") for fault in declared.faults]


def names(items):
    return [item.metadata.name for item in items]


def test_declared_and_cluster_objects_of_all_files(tmp_path):
    write(
        tmp_path,
        {
            "repositories.yaml": "---".join(map(repository, ("edge-us", "edge"))),
            "a/policy.yml": policy("monitoring"),
            "clusters/maps.yaml": "---".join(map(config_map, ("one", "two"))),
            "clusters/three.json": json.dumps(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}}
            ),
        },
    )
    declared = FileCluster([tmp_path]).read()
    assert lines(declared, tmp_path) == []
    assert names(declared.repositories) == ["edge", "edge-us"]
    assert names(declared.policies) == ["monitoring"]
    assert list(declared.objects.of_kind("", "ConfigMap")) == [
        ("default", "three"),
        ("platform", "one"),
        ("platform", "two"),
    ]
    assert (declared.left_out, declared.unread) == ((), ())


def test_an_object_without_a_namespace_is_in_the_default_one(tmp_path):
    write(
        tmp_path,
        {
            "a.yaml": repository("edge"),
            "b.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: one}}",
            "c.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: two, namespace: null}}",
        },
    )
    declared = FileCluster([tmp_path]).read()
    assert declared.repositories[0].metadata.namespace == "default"
    assert list(declared.objects.of_kind("", "Secret")) == [("default", "one"), ("default", "two")]


REGION = "{apiVersion: infra.example.com/v1, kind: Region, metadata: {name: eu}, spec: {size: 1}}"
REGIONS = """\
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: regions.infra.example.com}
    spec: {group: infra.example.com, scope: SCOPE, names: {kind: Region}}
    """


def test_a_cluster_scoped_object_is_in_no_namespace(tmp_path):
    write(
        tmp_path,
        {
            "a.yaml": "{apiVersion: v1, kind: Node, metadata: {name: one}}",
            "b.yaml": "{apiVersion: v1, kind: Node, metadata: {name: two, namespace: team}}",
            "c.yaml": REGION,
            "d.yaml": REGIONS.replace("SCOPE", "Cluster"),
        },
    )
    objects = FileCluster([tmp_path]).read().objects
    assert list(objects.of_kind("", "Node")) == [("", "one"), ("", "two")]
    [region] = objects.of_kind("infra.example.com", "Region").values()
    assert region["metadata"] == {"name": "eu"}


def test_a_kind_has_the_scope_of_its_definition_as_it_is_now(tmp_path):
    write(tmp_path, {"a.yaml": REGION, "b.yaml": REGIONS.replace("SCOPE", "Namespaced")})
    cluster = FileCluster([tmp_path])

    def keys():
        return list(cluster.read().objects.of_kind("infra.example.com", "Region"))

    assert keys() == [("default", "eu")]
    write(tmp_path, {"b.yaml": REGIONS.replace("SCOPE", "Cluster")})
    assert keys() == [("", "eu")]
    write(tmp_path, {"a.yaml": REGION.replace("size: 1", "size: 2")})
    assert keys() == [("", "eu")]
    (tmp_path / "b.yaml").unlink()
    assert keys() == [("default", "eu")]


def test_a_repeated_cluster_scoped_object_may_be_missed_in_any_namespace(tmp_path):
    write(
        tmp_path,
        {"a.yaml": REGION, "b.yaml": REGION, "c.yaml": REGIONS.replace("SCOPE", "Cluster")},
    )
    declared = FileCluster([tmp_path]).read()
    [failure] = declared.unusable
    assert (failure.kind, failure.namespace) == (("infra.example.com", "Region"), "")


def test_objects_that_share_their_metadata_by_an_alias_stay_apart(tmp_path):
    text = """
        apiVersion: v1
        kind: List
        items:
        - {apiVersion: v1, kind: Node, metadata: &same {name: one}}
        - {apiVersion: v1, kind: ConfigMap, metadata: *same}
        """
    write(tmp_path, {"a.yaml": text})
    declared = FileCluster([tmp_path]).read()
    assert lines(declared, tmp_path) == []
    assert len(declared.objects) == 2


def test_the_items_of_a_list_are_objects_of_their_own_with_their_lines(tmp_path):
    text = """
        apiVersion: v1
        kind: List
        items:
        - apiVersion: fanout.dev/v1alpha1
          kind: Repository
          metadata: {name: edge}
          spec: {url: "https://git.example.com/a.git"}
        - apiVersion: fanout.dev/v1alpha1
          kind: Repository
          metadata: {name: broken}
          spec:
            url: "https://git.example.com/b.git"
            colour: red
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}
        """
    write(tmp_path, {"a.yaml": text})
    declared = FileCluster([tmp_path]).read()
    (line,) = lines(declared, tmp_path)
    assert line.startswith("a.yaml:13: Repository/broken: spec.colour: ")
    assert names(declared.repositories) == ["edge"]
    assert len(declared.objects) == 1


def test_every_fault_of_every_document_in_one_run(tmp_path):
    broken = policy("one").replace("latest: true", "latest: 3").replace("targets", "target")
    write(
        tmp_path,
        {
            "a.yaml": broken + "---" + repository("edge"),
            "b.yaml": repository("other").replace("url:", "uri:"),
            "c.yaml": "apiVersion: v1\nkind: ConfigMap\n",
        },
    )
    declared = FileCluster([tmp_path]).read()
    problems = lines(declared, tmp_path)
    places = [line.split(": ")[:3] for line in problems]
    assert ["a.yaml:6", "UpstreamPolicy/one", "spec.upstream.revision.latest"] in places
    assert ["a.yaml:7", "UpstreamPolicy/one", "spec.target"] in places
    assert ["b.yaml:4", "Repository/other", "spec.uri"] in places
    assert ["c.yaml:1", "ConfigMap", "metadata"] in places
    assert all("; " in line for line in problems)


def test_the_faults_of_one_object_do_not_stop_the_others(tmp_path):
    write(
        tmp_path,
        {
            "all.yaml": "---".join(
                (
                    policy("bad").replace("latest: true", "latest: 3"),
                    policy("good"),
                    repository("edge"),
                    config_map("one"),
                    "\njust text\n",
                )
            )
        },
    )
    declared = FileCluster([tmp_path]).read()
    assert names(declared.policies) == ["good"]
    assert names(declared.repositories) == ["edge"]
    assert len(declared.objects) == 1
    assert [(key.kind, key.name) for key in declared.left_out] == [("UpstreamPolicy", "bad")]
    assert declared.unread == ()


FAULTS = [
    (
        "a kind of our group that there is not",
        {"a.yaml": "apiVersion: fanout.dev/v1alpha1\nkind: Repositry\nmetadata: {name: a}\n"},
        "a.yaml:2: Repositry/a: kind: unknown kind Repositry; did you mean Repository?",
    ),
    (
        "another version of our group",
        {"a.yaml": "kind: Repository\napiVersion: fanout.dev/v2\nmetadata: {name: a}\n"},
        (
            "a.yaml:2: Repository/a: apiVersion: unsupported apiVersion fanout.dev/v2; "
            "write fanout.dev/v1alpha1"
        ),
    ),
    (
        "a record, which nobody declares",
        {
            "a.yaml": "apiVersion: fanout.dev/v1alpha1\nkind: Evidence\n"
            "spec: {policy: a, stage: b, check: c, status: passed, revision: v1}\n"
        },
        (
            "a.yaml:2: Evidence: kind: Evidence is a record and cannot be declared in a file; "
            "use fanout report"
        ),
    ),
    (
        "a document that is not an object",
        {"a.yaml": "# text\n---\n- 1\n"},
        "a.yaml:3: is not an object; write apiVersion, kind and metadata, or remove it",
    ),
    (
        "a JSON file that is not an object",
        {"a.json": "[1]"},
        "a.json:1: is not an object; write apiVersion, kind and metadata, or remove it",
    ),
    (
        "an object without a kind",
        {"a.yaml": "apiVersion: v1\nmetadata:\n  name: a\n"},
        "a.yaml:1: a: kind: is missing or not a string; set kind",
    ),
    (
        "a name that is a number to YAML",
        {"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 7\n"},
        "a.yaml:4: ConfigMap: metadata.name: is missing or not a string; set metadata.name",
    ),
    (
        "metadata that is a list",
        {"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: []\n"},
        "a.yaml:3: ConfigMap: metadata: is missing or not an object; set metadata.name",
    ),
]


@pytest.mark.parametrize(("sentence", "files", "line"), FAULTS, ids=map(itemgetter(0), FAULTS))
def test_fault(sentence, files, line, tmp_path):
    write(tmp_path, files)
    assert lines(FileCluster([tmp_path]).read(), tmp_path) == [line]


UNREAD = [
    ("a duplicate key", b"kind: A\nkind: B\n", "a.yaml:2: "),
    ("a tab", b"kind:\n\tA\n", "a.yaml:2: "),
    ("what is not UTF-8", b"kind: \xff\n", "a.yaml:1: byte 7 is not UTF-8"),
    (
        "a bomb of aliases",
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (name, name, b",".join([b"*%c" % (name - 1)] * 9))
            for name in b"bcdefgh"
        ),
        "aliases make the document larger",
    ),
]


@pytest.mark.parametrize("ours", [False, True], ids=["cluster objects", "declared objects"])
@pytest.mark.parametrize(("sentence", "data", "problem"), UNREAD, ids=map(itemgetter(0), UNREAD))
def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_read(
    sentence, data, problem, ours, tmp_path
):
    begin = b"# fanout.dev/\n" if ours else b""
    write(tmp_path, {"a.yaml": data + begin, "b.yaml": repository("edge")})
    declared = FileCluster([tmp_path]).read()
    assert problem in "\n".join(lines(declared, tmp_path))
    assert [it.source for it in declared.unread] == [str(tmp_path / "a.yaml")]
    assert names(declared.repositories) == ["edge"]


def test_empty_documents_and_a_byte_order_mark_are_no_fault(tmp_path):
    write(
        tmp_path,
        {
            "empty.yaml": "",
            "comment.yaml": "# nothing\n---\n---\n",
            "empty.json": "",
            "bom.yaml": b"\xef\xbb\xbf" + config_map("one").lstrip().encode(),
        },
    )
    declared = FileCluster([tmp_path]).read()
    assert lines(declared, tmp_path) == []
    assert len(declared.objects) == 1


def test_of_two_objects_of_one_name_none_is_used(tmp_path):
    write(
        tmp_path,
        {
            "a.yaml": config_map("one") + "---" + config_map("two"),
            "b.yaml": config_map("one").replace("v1", "v2"),  # v2 is no other object
            "c.yaml": repository("edge") + "---" + repository("other"),
            "d.yaml": repository("edge").replace("url", "uri"),
        },
    )
    declared = FileCluster([tmp_path]).read()
    assert list(declared.objects.of_kind("", "ConfigMap")) == [("platform", "two")]
    assert names(declared.repositories) == ["other"]
    assert [key.name for key in declared.left_out] == ["edge"]


def test_two_objects_of_one_name_are_reported_with_both_places(tmp_path):
    write(
        tmp_path,
        {
            "a.yaml": config_map("one") + "---" + config_map("two"),
            "b.yaml": "# first\n" + config_map("one").lstrip() + "---" + config_map("one"),
            "c.yaml": repository("edge") + "---" + repository("edge"),
        },
    )
    declared = FileCluster([tmp_path]).read()
    sentence = (
        "is already declared in namespace {} at {}/{}; none of them is used; rename or remove one"
        " of them"
    )
    assert [str(fault) for fault in declared.faults] == [
        f"{tmp_path}/b.yaml:4: ConfigMap/one: metadata.name: "
        + sentence.format("platform", tmp_path, "a.yaml:3"),
        f"{tmp_path}/b.yaml:9: ConfigMap/one: metadata.name: "
        + sentence.format("platform", tmp_path, "a.yaml:3"),
        f"{tmp_path}/c.yaml:8: Repository/edge: metadata.name: "
        + sentence.format("default", tmp_path, "c.yaml:3"),
    ]
    assert list(declared.objects.of_kind("", "ConfigMap")) == [("platform", "two")]


def test_an_object_that_hides_our_group_behind_an_escape_is_ours(tmp_path):
    text = repository("edge").replace("fanout.dev/v1alpha1", '"fanout\\x2edev/v1alpha1"')
    write(tmp_path, {"a.yaml": text})
    assert names(FileCluster([tmp_path]).read().repositories) == ["edge"]


def test_faults_between_objects_have_their_places_and_do_not_stop_the_object(tmp_path):
    write(tmp_path, {"a.yaml": policy("monitoring")})
    declared = FileCluster([tmp_path]).read()
    assert lines(declared, tmp_path)[0].startswith(
        "a.yaml:6: UpstreamPolicy/monitoring: spec.upstream.repository: there is no Repository edge"
    )
    assert names(declared.policies) == ["monitoring"]


def test_a_declared_object_s_fields_can_be_placed_later(tmp_path):
    write(tmp_path, {"a.yaml": repository("edge") + "---" + policy("monitoring")})
    declared = FileCluster([tmp_path]).read()
    (item,) = declared.policies
    where = declared.where(item, "spec.stages[0].verification")
    assert str(where) == (
        f"{tmp_path}/a.yaml:17: UpstreamPolicy/monitoring: spec.stages[0].verification"
    )
    assert declared.where(item, ("spec", "stages", 0, "verification")) == where
    assert declared.where(item, "spec.stages[0].after.soak").line == 16
    assert declared.where(item).line == 6


def test_a_directory_that_is_not_there_is_reported(tmp_path):
    declared = FileCluster([tmp_path / "nowhere"]).read()
    assert lines(declared, tmp_path) == ["nowhere: does not exist; correct the path of -f"]
    assert [it.source for it in declared.unread] == [str(tmp_path / "nowhere")]
