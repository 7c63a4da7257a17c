"""Problems of status files, as people read them behind the name of the file."""

import pytest

from fanout.cluster.record_files import UnreadableStateError, parse_shard, shard_path

PROBLEMS = [
    (b'{"a": 1}\n', "has no key in line 1"),
    (b'{"key": "a"}\n{"key": "a"}\n', "has 'a' twice or in the wrong file (line 2)"),
    (b"{\n", "in line 1 is not JSON: "),
    (b'{"key": "a", "b": 1, "b": 2}\n', "in line 1 is not JSON: a key occurs twice"),
]


@pytest.mark.parametrize(("data", "sentence"), PROBLEMS, ids=[it[1] for it in PROBLEMS])
def test_an_unreadable_status_file_names_the_line(data, sentence):
    with pytest.raises(UnreadableStateError) as error:
        parse_shard(data, shard_path("a"))
    assert str(error.value).startswith(sentence)
