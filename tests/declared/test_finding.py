"""Equal errors are one line and a number, however many there are."""

from fanout.cluster.file_cluster import FileCluster
from fanout.declared.finding import Finding, group_findings
from fanout.errors import ErrorLocation


def finding(number: int, problem: str = "must be text", name: str = "") -> Finding:
    where = ErrorLocation(
        f"Cluster/{name or f'c{number}'}", "metadata.labels.x", "sites.yaml", number
    )
    return Finding(where, problem, "put it in quotes")


def test_a_few_equal_errors_have_a_line_each():
    assert len([*group_findings(map(finding, range(1, 11)))]) == 10


def test_many_equal_errors_are_one_line_that_names_a_few():
    [(_, line)] = group_findings(map(finding, range(1, 100_001)))
    assert line == (
        "sites.yaml:1: Cluster/c1: metadata.labels.x: must be text; put it in quotes"
        " (and 99,999 more, at sites.yaml:2: Cluster/c2, sites.yaml:3: Cluster/c3,"
        " sites.yaml:4: Cluster/c4, …)"
    )


def test_names_and_places_in_a_sentence_make_no_other_error():
    sentence = "c{} is already declared at sites.yaml:{}"
    twice = (finding(number, sentence.format(number, number + 9)) for number in range(99))
    assert len([*group_findings(twice)]) == 1


def test_different_errors_stay_separate_groups():
    findings = [*map(finding, range(99)), *(finding(n, "is no text") for n in range(99))]
    assert len([*group_findings(findings)]) == 2


def test_an_object_twice_at_lines_that_nobody_can_name(tmp_path, monkeypatch):
    """The reader with positions may refuse what the quick one has read."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
    (tmp_path / "a.yaml").write_text(f"{text}---\n{text}")

    def refuse(*_: object) -> None:
        raise ValueError("positions")

    monkeypatch.setattr("fanout.cluster.file_cluster.find_positions", refuse)
    declared = FileCluster([tmp_path]).read()
    [fault] = declared.faults
    assert str(fault).startswith(f"{tmp_path}/a.yaml: ConfigMap/x: metadata.name: is declared more")
    assert len(declared.unusable) == 1
