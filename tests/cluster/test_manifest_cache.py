"""What files held is kept from one command to the next, and is believed only when it is that."""

import hashlib
import json
import os
import resource
import subprocess
import sys
import threading
from operator import itemgetter

import pytest

from fanout.cluster.file_cluster import FileCluster
from fanout.cluster.manifest_cache import ManifestCache, compute_cache_key

SETTINGS = """\
apiVersion: example.com/v1
kind: Settings
metadata: {{name: {name}, namespace: platform}}
data:
  number: 1
  text-of-it: "1"
  truth: true
  share: 1.0
  nothing:
  switch: "on"
  text: |
    käse {value}
"""
REPOSITORY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: edge}
spec: {url: "https://git.example.com/edge.git"}
"""


def many(value="x", number=200):
    """A file that is large enough to be kept."""
    return "---\n".join(SETTINGS.format(name=f"map-{n}", value=value) for n in range(number))


@pytest.fixture
def fleet(tmp_path):
    return Fleet(tmp_path)


class Fleet:
    """A directory of objects, and the commands that read it one after the other."""

    def __init__(self, root):
        self.files = root / "files"
        self.files.mkdir()
        self.state = root / "state" / "parsed"

    def write(self, **files):
        for name, text in files.items():
            (self.files / f"{name}.yaml").write_text(text)

    def command(self, **options):
        return FileCluster([self.files], cache=ManifestCache(self.state, **options))

    def read(self, **options):
        return summarize(self.command(**options).read())

    def alone(self):
        """What is read without any cache."""
        return summarize(FileCluster([self.files]).read())

    @property
    def entries(self):
        return sorted(path for path in self.state.iterdir()) if self.state.exists() else []


def summarize(declared):
    return dict(declared.objects.of_kind("example.com", "Settings")), [
        str(one) for one in declared.faults
    ]


def mark(entry):
    """Let the entry say something else, and seal it: who tells that has not read the file."""
    body = entry.read_bytes().partition(b"\n")[2]
    assert body.count(b'"on"') == 1
    entry.write_bytes(sealed(entry.name, body.replace(b'"on"', b'"kept"')))


def marked(answer):
    return "kept" in [item["data"]["switch"] for item in answer[0].values()]


def sealed(name, body):
    return hashlib.sha256(name.encode() + b"\0" + body).hexdigest().encode() + b"\n" + body


def test_the_second_command_reads_what_the_first_one_kept(fleet):
    fleet.write(a=many())
    first, second = fleet.read(), fleet.read()
    assert repr(first) == repr(second) == repr(fleet.alone())  # 1, 1.0 and true are not the same
    (entry,) = fleet.entries
    mark(entry)
    assert marked(fleet.read())


def written(entry):
    return entry.stat().st_mtime_ns


def test_equal_texts_of_two_kept_files_are_one_object(fleet):
    fleet.write(a=many(), b=many().replace("map-", "other-"))
    fleet.read()
    objects, _ = fleet.read()
    assert objects["platform", "map-1"]["data"] == objects["platform", "other-2"]["data"]
    assert len({id(item["data"]["text"]) for item in objects.values()}) == 1


def test_the_cache_directory_is_readable_by_its_owner_alone(fleet):
    fleet.write(a=many())
    fleet.read()
    assert fleet.state.stat().st_mode & 0o777 == 0o700


NOT_KEPT = [
    ("a small file", many(number=3)),
    ("a file with an object of fanout's own", f"{many()}---\n{REPOSITORY}"),
    ("a file with an object that is there twice", f"{many()}---\n{many()}"),
    ("a file with something that is wrong", f"{many()}---\nkind: Site\n"),
    ("a file that cannot be read", f"{many()}---\n{{"),
]


@pytest.mark.parametrize(("sentence", "text"), NOT_KEPT, ids=map(itemgetter(0), NOT_KEPT))
def test_a_file_without_many_plain_objects_is_not_cached(fleet, sentence, text):
    fleet.write(a=text)
    assert fleet.read() == fleet.alone()
    assert fleet.entries == []


def damaged(data, number=40):
    return data[:number] + bytes([data[number] ^ 1]) + data[number + 1 :]


LIES = [
    ("one character of the content changed", lambda data: damaged(data, 500)),
    ("one character of the digest changed", damaged),
    ("the end is missing", lambda data: data[:-10]),
    ("more behind the end", lambda data: data + b"x"),
    ("nothing", lambda data: b""),
    ("no line", lambda data: data[:64]),
    ("no text at all", lambda data: bytes(range(256)) * 100),
    ("absurdly deep", lambda data: data[:65] + b"[" * 200_000),
    ("of another kind", lambda data: data[:65] + b'{"a": 1}'),
]


@pytest.mark.parametrize(("sentence", "lie"), LIES, ids=map(itemgetter(0), LIES))
def test_an_entry_that_lies_is_not_believed_and_written_anew(fleet, sentence, lie):
    fleet.write(a=many())
    fleet.read()
    (entry,) = fleet.entries
    right = entry.read_bytes()
    entry.write_bytes(lie(right))
    assert fleet.read() == fleet.alone()
    assert entry.read_bytes() == right


STRANGE = [
    ("deep texts", "[" * 200_000),
    ("deep objects", f"[]\n{'[' * 200_000}"),
    ("no objects", "[]"),
    ("texts that are none", "[[]]\n[]"),
    ("a number in place of texts", "12\n[]"),
    ("a mapping", "[]\n{}x"),
    ("a number", '["a"]\n12'),
    ("a text that is not there", '["a"]\n[[1, 1, []]]'),
    ("a text counted from behind", '["a"]\n[[-1, -1, []]]'),
    ("objects that are none", '["a"]\n[[0, 0, [0]]]'),
    ("an object without a name", '["a"]\n[[0, 0, [{"metadata": {}}]]]'),
    ("a kind that is no text", "[]\n[[[], {}, []]]"),
]


@pytest.mark.parametrize(("sentence", "body"), STRANGE, ids=map(itemgetter(0), STRANGE))
def test_an_entry_that_was_sealed_and_makes_no_sense_is_not_there(fleet, sentence, body):
    fleet.write(a=many())
    fleet.read()
    (entry,) = fleet.entries
    entry.write_bytes(sealed(entry.name, body.encode()))
    assert fleet.read() == fleet.alone()


def test_the_entry_of_another_file_is_not_believed(fleet):
    fleet.write(a=many("x"))
    fleet.read()
    (one,) = fleet.entries
    fleet.write(a=many("y"))
    fleet.read()
    (other,) = set(fleet.entries) - {one}
    other.write_bytes(one.read_bytes())
    assert fleet.read() == fleet.alone()


def test_a_file_named_as_json_and_the_same_bytes_as_yaml_are_two(fleet):
    item = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"a": "b"}},
    }
    items = [
        item | {"metadata": {"name": f"map-{n}"}, "data": {"a": "x" * 100}} for n in range(200)
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    (fleet.files / "a.json").write_text(text)
    assert fleet.read() == fleet.alone()
    (fleet.files / "a.json").rename(fleet.files / "a.yaml")
    assert fleet.read() == fleet.alone()
    assert len(fleet.entries) == 2


def test_the_namespace_of_objects_that_name_none_is_part_of_what_is_kept(fleet):
    fleet.write(a=many().replace(", namespace: platform", ""))
    for _ in range(2):
        cluster = FileCluster([fleet.files], cache=ManifestCache(fleet.state))
        assert {at for at, _ in cluster.read().objects.of_kind("example.com", "Settings")} == {
            "default"
        }
    assert len(fleet.entries) == 1
    assert compute_cache_key(b"1", as_json=True) != compute_cache_key(b"1", as_json=False)


def test_a_directory_that_vanishes_between_two_passes_is_made_again(fleet):
    fleet.write(a=many("x"))
    cluster = fleet.command()
    cluster.read()
    for entry in fleet.entries:
        entry.unlink()
    fleet.state.rmdir()
    fleet.write(a=many("y"))
    assert summarize(cluster.read()) == fleet.alone()
    assert len(fleet.entries) == 1


def test_a_file_that_changes_while_a_process_stays_is_read_anew(fleet):
    fleet.write(a=many("x"), b=many("y", 3))
    cluster = fleet.command()
    cluster.read()
    fleet.write(a=many("z"))
    assert summarize(cluster.read()) == fleet.alone()
    fleet.write(a=many("x"))  # as it was: the entry is still there
    assert summarize(cluster.read()) == fleet.alone()


def test_reading_works_without_a_writable_cache(fleet):
    fleet.write(a=many())
    fleet.state.parent.mkdir()
    fleet.state.write_text("a file where the directory should be")
    assert fleet.read() == fleet.alone()
    assert fleet.state.read_text() == "a file where the directory should be"


def test_a_full_disk_is_no_fault_and_leaves_nothing(fleet):
    fleet.write(a=many())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        assert fleet.read() == fleet.alone()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert fleet.entries == []


def test_an_entry_that_cannot_be_opened_is_not_there(fleet):
    fleet.write(a=many())
    fleet.read()
    (entry,) = fleet.entries
    entry.unlink()
    entry.mkdir()
    assert fleet.read() == fleet.alone()
    assert fleet.entries == [entry]  # no half-written file is left either


def test_no_more_is_kept_than_there_is_room_for_and_the_latest_stays(fleet):
    size = len(many()) * 2
    for number in range(20):
        fleet.write(a=many(f"{number:02d}"))
        fleet.read(limit=size * 5)
        for age, entry in enumerate(sorted(fleet.entries, key=written), 1):
            os.utime(entry, (age, age))
        assert sum(entry.stat().st_size for entry in fleet.entries) <= size * 5
    assert len(fleet.entries) > 1
    mark(max(fleet.entries, key=written))
    assert marked(fleet.read(limit=size * 5))


def test_a_file_that_would_take_most_of_the_room_is_not_kept(fleet):
    fleet.write(a=many())
    fleet.read(limit=len(many()) * 2)
    assert fleet.entries == []


def test_a_used_cache_entry_stays_longer(fleet):
    fleet.write(a=many("old"))
    fleet.read()
    (old,) = fleet.entries
    os.utime(old, (1, 1))
    fleet.read()
    assert old.stat().st_mtime > 1


READER = """
import sys
from pathlib import Path
from fanout.cluster.file_cluster import FileCluster
from fanout.cluster.manifest_cache import ManifestCache
cluster = FileCluster([Path(sys.argv[1])], cache=ManifestCache(Path(sys.argv[2])))
print(*cluster.read().objects.of_kind("example.com", "Settings").items(), sep="\\n")
"""


def test_commands_that_run_at_once_read_the_same(fleet):
    for number in range(8):
        fleet.write(**{f"f{number}": many(str(number)).replace("map-", f"map-{number}-")})
    command = [sys.executable, "-c", READER, fleet.files, fleet.state]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [one.communicate()[0] for one in both]
    objects, _ = fleet.alone()
    assert answers == ["".join(f"{item}\n" for item in objects.items())] * 2
    assert len(fleet.entries) == 8


def test_a_file_that_is_written_while_it_is_read_leaves_nothing_wrong(fleet):
    fleet.write(a=many("x"))
    stop = threading.Event()

    def write():
        while not stop.is_set():
            fleet.write(a=many("x", 150))
            fleet.write(a=many("y"))

    writer = threading.Thread(target=write)
    writer.start()
    cluster = fleet.command()
    for _ in range(20):
        cluster.read()
    stop.set()
    writer.join()
    assert summarize(cluster.read()) == fleet.alone()
    assert fleet.read() == fleet.alone()
