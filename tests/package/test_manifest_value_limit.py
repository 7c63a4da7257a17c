"""The values of a package are counted while its files are parsed, and refused beyond the limit."""

import subprocess
import sys

import pytest

from fanout.errors import InvalidInput
from fanout.package.manifest import Manifest
from fanout.package.package_limits import ValueCounter
from fanout.package.yaml_nodes import InvalidManifest

NUMBERS = [
    # description, file, text, number of values
    ("a mapping and its two values", "a.yaml", "a: 1\nb: 2\n", 3),
    ("nested collections", "a.yaml", "a: {b: [1, 2]}\nc: {}\n", 6),
    ("documents, empty ones too", "a.yaml", "a: 1\n---\n---\nb: 1\n", 5),
    ("an alias once", "a.yaml", "a: &x [1, 2]\nb: *x\n", 5),
    ("keys that are given twice", "a.yaml", "a: 1\na: 2\n", 3),
    ("no text", "a.yaml", "# nothing\n", 0),
    ("JSON as YAML", "a.json", '{"a": {"b": [1, 2]}, "c": {}}', 6),
    ("JSON with signs in texts", "a.json", '["a:{[,\\"", "b" , {"c\\\\" : ":"}]', 5),
    ("JSON literals", "a.json", "[null, true, -1.5e3]", 4),
    ("one text of JSON", "a.json", '"a"', 1),
    ("no JSON", "a.json", " \n", 0),
]


@pytest.mark.parametrize(
    ("file", "text", "number"), [row[1:] for row in NUMBERS], ids=[row[0] for row in NUMBERS]
)
def test_a_file_has_as_many_values_as_its_package_may_have(file, text, number):
    for _ in range(3):  # a text that was parsed before is counted like a new one
        counter = ValueCounter(number)
        if "a: 2" in text and "b" not in text:
            with pytest.raises(InvalidManifest):
                Manifest.parse(text.encode(), file, counter)
        else:
            Manifest.parse(text.encode(), file, counter)
        assert counter.count == number
    if number:
        with pytest.raises(InvalidInput, match=f"{file}: the package has more than {number - 1} "):
            Manifest.parse(text.encode(), file, ValueCounter(number - 1))


def test_words_at_the_ends_of_lines_change_no_number():
    for word in ("one", "two", "three"):
        counter = ValueCounter()
        Manifest.parse(f"a: {word}\nb: [x]\n".encode(), "a.yaml", counter)
        assert counter.count == 4


def test_files_of_one_package_are_added_up():
    counter = ValueCounter(5)
    Manifest.parse(b"a: 1\nb: 2\n", "a.yaml", counter)
    with pytest.raises(InvalidInput) as caught:
        Manifest.parse(b"a: 1\nc: 3\n", "b.yaml", counter)
    assert caught.value.reason == "LimitExceeded"
    assert caught.value.where.file == "b.yaml"
    assert "packageLimits.values" in caught.value.remedy


def test_values_behind_a_syntax_error_are_counted():
    text = b"a: 1\n---\nb: [\n---\n" + b"- c\n" * 10
    with pytest.raises(InvalidInput, match="more than 8 YAML values"):
        Manifest.parse(text, "a.yaml", ValueCounter(8))


@pytest.mark.parametrize("text", ['"' + '\\"' * 200_000, '["' * 200_000])
def test_json_that_never_ends_is_counted_in_one_go(text):
    with pytest.raises(InvalidInput):
        Manifest.parse(text.encode(), "a.json", ValueCounter())


MEASURE = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from package.test_manifest_value_limit import hostile
data, file = hostile(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from fanout.package.manifest import Manifest
from fanout.package.package_limits import ValueCounter
from fanout.errors import InvalidInput
try:
    Manifest.parse(data, file, ValueCounter())
except InvalidInput as error:
    assert error.reason == "LimitExceeded"
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def hostile(kind):
    """A file of about 10 MiB with a million keys or more, and its name."""
    match kind:
        case "yaml":
            return b"".join(b"k%07d: v\n" % n for n in range(1_000_000)), "a.yaml"
        case "flow":
            return b"[" + b"{a: b}," * 1_400_000 + b"]", "a.yaml"
        case _:
            return b"[" + b'{"a":[]},' * 1_200_000 + b"[]]", "a.json"


@pytest.mark.parametrize("kind", ["yaml", "flow", "json"])
def test_a_package_with_too_many_values_takes_little_memory(kind, request):
    tests = str(request.config.rootpath / "tests")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, tests, kind], capture_output=True, check=True, text=True
    )
    assert int(done.stdout) < 100 << 10  # KiB
