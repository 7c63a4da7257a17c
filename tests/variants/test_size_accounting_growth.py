"""Time over an author's data grows at most as n log n, or is refused beyond a limit.

Steps are the instructions that Python runs, so the law is the same on each machine. What C code
does in one is not counted: patterns are matched by RE2 or without going back.
"""

import sys
from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from types import FrameType

import pytest
from variants.running import configured_by, kptfile, run

from fanout.api.promotion_policy import matches_name_pattern
from fanout.api.stages import After
from fanout.api.validators.stage_references import find_cycles
from fanout.errors import InvalidInput
from fanout.gates.gate_rules import StageRule
from fanout.gates.removal_gate import compute_levels
from fanout.package.field_edits import ValueEditor
from fanout.package.ignored_files import find_ignored
from fanout.package.manifest import Manifest
from fanout.package.revision import parse_range
from fanout.selection.label_selector import matches, parse_selector
from fanout.selection.path_collisions import find_collisions, find_intrusions
from fanout.selection.variant_spec import VariantSpec
from fanout.variants import pipeline_run
from fanout.variants.functions import apply_replacements
from fanout.variants.functions.search_replace import matches_path, split_path
from fanout.variants.functions.setters import derive_values
from fanout.variants.manifest_objects import find_objects
from fanout.variants.overlay import Overlay

FEW = 14
FACTOR = 4
LIMIT = 4.8  # of steps for four times as much: 4 * log(56) / log(14) is 6.1, and most are linear


def maps(count: int, value: str = "b", comment: str = "") -> str:
    """Objects; `{}` in value and comment is the number of each."""
    return "---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\n"
        f"data:\n  a: {value.format(n)}{comment.format(n)}\n"
        for n in range(count)
    )


def pipeline(image: str, objects: str, **config: str) -> Callable[[], object]:
    """A package of these objects, and the function with this configuration."""
    data = ", ".join(f"{key}: {value!r}" for key, value in config.items())
    files = {"Kptfile": kptfile(f"{{image: {image}, configMap: {{{data}}}}}"), "a.yaml": objects}
    return lambda: run(files)


def replace_in(objects: str, rows: str) -> Callable[[], object]:
    """A package of these objects, and of replacements."""
    head = "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata: {name: r}\n"
    files = {
        "Kptfile": configured_by("apply-replacements:v0.1.1"),
        "config.yaml": f"{head}replacements:\n{rows}",
        "a.yaml": objects,
    }
    return lambda: run(files)


def replacements(count: int) -> Callable[[], object]:
    rows = "".join(
        f"- source: {{name: c{n}, fieldPath: data.a}}\n"
        f"  targets: [{{select: {{name: c{n}}}, fieldPaths: [data.a]}}]\n"
        for n in range(count)
    )
    return replace_in(maps(count), rows)


def paths_in_a_list(count: int, *selected: str) -> Callable[[], object]:
    elements = ", ".join(f"{{name: e{n}, value: x}}" for n in range(count))
    each = [f"[name=e{n}]" for n in range(count)]
    paths = ", ".join(f"'spec.list.{it}.value'" for it in selected or each)
    return replace_in(
        f"apiVersion: x.io/v1\nkind: X\nmetadata: {{name: x}}\nspec: {{list: [{elements}]}}\n",
        f"- {{sourceValue: z, targets: [{{select: {{kind: X}}, fieldPaths: [{paths}]}}]}}\n",
    )


def set_elements(count: int) -> Callable[[], object]:
    text = f"apiVersion: x.io/v1\nkind: X\nmetadata: {{name: x}}\nlist: [{'x, ' * count}]\n"
    [item] = find_objects(Manifest.parse(text.encode(), "a.yaml")).values()
    overlay = Overlay("a.yaml", item)
    return lambda: [overlay.set(("list", at), "z") for at in range(count)]


def claims(paths: list[str]) -> list[tuple[str, VariantSpec]]:
    return [
        ("edge#refs/heads/main", VariantSpec(f"v{n}", "a", "p", "dev", "t", "up", "p", "edge", it))
        for n, it in enumerate(paths)
    ]


def collisions(paths: list[str]) -> Callable[[], object]:
    wanted = claims(paths)
    return lambda: (find_collisions(wanted, {}), find_intrusions(wanted, wanted))


def ignored(files: list[str], *patterns: str) -> Callable[[], object]:
    content = dict.fromkeys(files, ("", b""))
    return lambda: find_ignored({**content, ".krmignore": ("", "\n".join(patterns).encode())})


def labels(count: int) -> Callable[[], object]:
    def select() -> None:
        text = f"tier in ({','.join(f'v{n}' for n in range(count))})"
        selector = parse_selector(",".join([text] * 3))
        for n in range(count):
            matches(selector, {"tier": f"v{n}"})

    return select


def stages(count: int) -> Mapping[str, dict]:
    return {f"s{n}": {f"s{(n + 1) % count}": ("spec", n)} for n in range(count)}


CASES: dict[str, Callable[[int], Callable[[], object]]] = {
    "a pattern of many stars for a name": lambda n: lambda: matches_name_pattern(
        "*a" * (n // 2) + "*b", "a" * n
    ),
    "a by-path of many globs": lambda n: lambda: matches_path(["a"] * 20 * n, ["**", "a"] * 4),
    "a by-path for many values": lambda n: pipeline(
        "search-replace:v0.2.0", maps(n), **{"by-path": "**.a." * n + "x", "put-value": "z"}
    ),
    "a setter for each value": lambda n: pipeline(
        "apply-setters:v0.2.0",
        maps(n, comment=" # kpt-set: ${{s{}}}"),
        **{f"s{at}": "v" for at in range(n)},
    ),
    "a setter made of each value": lambda n: pipeline(
        "create-setters:v0.1.0", maps(n, "v{}x"), **{f"s{at}": f"v{at}x" for at in range(n)}
    ),
    "a value for each element of a list": lambda n: set_elements(8 * n),
    "a pattern of many setters": lambda n: lambda: derive_values(
        "".join(f"${{s{at}}}x" for at in range(n)), "x" * 4 * n
    ),
    "a label for each object": lambda n: pipeline("set-labels:v0.2.0", maps(n), tier="x"),
    "names that others refer to": lambda n: pipeline(
        "ensure-name-substring:v0.2.0", maps(n), prepend="p-"
    ),
    "objects of one name": lambda n: lambda: run({"a.yaml": maps(1) + ("---\n" + maps(1)) * n}),
    "objects in many files": lambda n: lambda: run({f"{at}.yaml": maps(1) for at in range(n)}),
    "aliases of aliases": lambda n: lambda: Manifest.parse(
        "".join(f"a{at}: &a{at} [*a{at - 1}, *a{at - 1}]\n" if at else "a0: &a0 [x]\n"
                for at in range(n)).encode(), "a.yaml"
    ),
    "aliases of one anchor": lambda n: lambda: Manifest.parse(
        f"a: &a [{'x, ' * n}]\nb: [{'*a, ' * n}]\n".encode(), "a.yaml"
    ),
    "equal paths": lambda n: collisions(["x"] * n),
    "a path around all": lambda n: collisions(["x", *(f"x/{at}" for at in range(n))]),
    "ignored files": lambda n: ignored([f"{at}/{'a' * 99}" for at in range(n)], "*a*a*b", "!*.x"),
    "ignored files in deep directories": lambda n: ignored(
        ["a/" * 8 * n + "f", "b/" * 8 * n + "f"], "*a*b", "a/b/f", "/a/a/c", "!f"
    ),
    "ignored by name": lambda n: ignored([f"{at}/f" for at in range(n)], *map(str, range(n))),
    "a selector of many values": labels,
    "stages in a ring": lambda n: lambda: list(find_cycles(dict(stages(n)), "cycle")),
    "stages after all before": lambda n: lambda: compute_levels(
        [StageRule(name=f"s{at}", after=After(stages=(f"s{at - 1}",)) if at else None)
         for at in range(n)]
    ),
    "a range of many parts": lambda n: lambda: parse_range(" || ".join(["^1.2"] * n)),
}  # fmt: skip


def count_steps(call: Callable[[], object]) -> int:
    """Return how many instructions of Python run; a refusal ends them."""
    steps = 0

    def trace(frame: FrameType, event: str, _argument: object) -> object:
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(InvalidInput):
            call()
    finally:
        sys.settrace(previous)
    return steps


@pytest.mark.parametrize("name", CASES)
def test_steps_grow_with_the_data(name: str) -> None:
    build = CASES[name]
    with suppress(InvalidInput):
        build(FEW)()  # what is loaded or computed once
    few, many = count_steps(build(FEW)), count_steps(build(FACTOR * FEW))
    assert few > 0
    assert many <= LIMIT * few, (few, many)


def replace_in_a_list(count: int) -> Callable[[], object]:
    return paths_in_a_list(count, "*")


def search_in_a_list(count: int) -> Callable[[], object]:
    elements = "".join(f"- v{n}\n" for n in range(count))
    text = f"apiVersion: x.io/v1\nkind: X\nmetadata: {{name: x}}\nlist:\n{elements}"
    return pipeline("search-replace:v0.2.0", text, **{"by-value-regex": "v.*", "put-value": "z"})


@pytest.mark.parametrize("build", [search_in_a_list, replace_in_a_list, set_elements])
def test_elements_that_are_copied_grow_with_the_data(
    monkeypatch: pytest.MonkeyPatch, build: Callable[[int], Callable[[], object]]
) -> None:
    """A copy of a list is one instruction, whatever its length."""
    copied, copy = 0, ValueEditor._copy

    def count(edited: ValueEditor, data: Sized) -> object:
        nonlocal copied
        result = copy(edited, data)
        copied += len(data) if result is not data else 0
        return result

    monkeypatch.setattr(ValueEditor, "_copy", count)
    build(FEW)()
    few, copied = copied, 0
    build(FACTOR * FEW)()
    assert 0 < copied <= LIMIT * few


@pytest.mark.parametrize("build", [replacements, paths_in_a_list])
def test_replacements_beyond_a_limit_are_refused(
    monkeypatch: pytest.MonkeyPatch, build: Callable[[int], Callable[[], object]]
) -> None:
    """Each is compared with each object, as a replacement may change what the next one selects."""
    monkeypatch.setattr(apply_replacements, "MAX_LOOKUPS", 4 * FEW * FEW)
    build(FEW)()
    with pytest.raises(InvalidInput) as caught:
        build(3 * FEW)()
    assert caught.value.reason == "LimitExceeded"


def test_more_functions_for_more_objects_than_the_limit_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline_run, "MAX_VISITS", 5 * FEW)
    function = "{image: set-labels:v0.2.0, configMap: {tier: x}}"
    run({"Kptfile": kptfile(*[function] * 4), "a.yaml": maps(FEW)})
    with pytest.raises(InvalidInput) as caught:
        run({"Kptfile": kptfile(*[function] * 6), "a.yaml": maps(FEW)})
    assert caught.value.reason == "LimitExceeded"


def test_a_long_key_is_one_element() -> None:
    """Else each value below it would split it again."""
    assert split_path(("a.b", "c")) == ["a", "b", "c"]
    assert len(split_path(("a." * 1000, "c"))) == 2
