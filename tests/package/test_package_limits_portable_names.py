"""Names of files that some systems take for one another, or for a device."""

import pytest

from fanout.package.package_limits import find_unportable_files

ROWS = [
    ("different names", ["a.yaml", "b.yaml", "x/a.yaml"], {}),
    ("different directories", ["A/a.yaml", "a/b.yaml"], {}),
    ("upper and lower case", ["a.yaml", "A.yaml"], {"a.yaml": "from A.yaml only in case"}),
    ("in a directory", ["x/Y/z", "X/y/z"], {"x/Y/z": "from X/y/z only in case"}),
    ("two forms of one letter", ["\u00e4", "a\u0308"], {"\u00e4": "Unicode form"}),
    ("a file where a directory is", ["a", "A/b"], {"a": "A/b is inside it if case is ignored"}),
    ("a device", ["nul", "x/AUX.yaml"], {"nul": "reserved", "x/AUX.yaml": "reserved"}),
    ("a directory that is a device", ["con/x.yaml"], {"con/x.yaml": "reserved"}),
    ("a numbered device", ["com1.txt", "lpt9", "com"], {"com1.txt": "com1.txt", "lpt9": "lpt9"}),
    ("a dot or a space at the end", ["a.", "b /c"], {"a.": "ends with", "b /c": "ends with"}),
    ("a device at the end of a name", ["x.con", "console.yaml"], {}),
]


@pytest.mark.parametrize(("sentence", "files", "faults"), ROWS, ids=[row[0] for row in ROWS])
def test_file_faults(sentence, files, faults):
    problems = dict(find_unportable_files(files))
    assert problems.keys() == faults.keys()
    assert all(words in problems[path] for path, words in faults.items())
