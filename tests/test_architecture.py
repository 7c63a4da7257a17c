"""Layers, sizes, names, and pages that must agree with the code.

Direction of imports is import-linter's business (`make lint`); this is what it cannot say.
"""

import ast
import re
import tomllib
from itertools import combinations

from source_files import MODULES, ONE_PROCESS, PACKAGE, ROOT, name_of, read_source, text_of

pytestmark = ONE_PROCESS

LONGEST_FILE = 600  # lines of code: one concept, one module
LONGEST_FUNCTION = 80  # lines without its docstring and comments
# Classes that share 60 % of their fields, and four at least, and why they are two.
SEPARATE_CLASSES = {
    ("ApprovalSpec", "StatedApproval"): "in a scenario trees have any names, or are not stated",
    ("ApprovalView", "EvidenceView"): "two kinds of records; each field says something else",
    ("DecisionSpec", "StatedDecision"): "in a scenario instants may be distances, trees not stated",
    ("DraftViewStatus", "PackageVersion"): "a view, and one of the things that it shows",
    ("Function", "FunctionSpec"): "what users write, and what comes of it for one target",
    ("Hold", "CheckResult"): "what blocks, and a result that may have passed",
    ("HttpCheck", "ProbeQuery"): "what users write, and the request that comes of it",
    ("ObjectMeta", "PipelineSelector"): "labels and annotations of an object, or to select it by",
    ("PipelineSelector", "VariantSpec"): "labels and annotations to select by, or to be written",
    ("RequestDraft", "RequestEdit"): "None leaves a field of a request as it is",
    ("SharedRun", "RenderedPackage"): "templates for all targets, and the files of one",
    ("Stage", "StageRule"): "what users write, and what is resolved of it, with promotions",
    ("StageAggregates", "ExpectedStage"): "counts, and those that an author states, if any",
    ("StageMoment", "ExpectedStage"): "a view, and those of its fields that an author states",
    ("StageMoment", "StageResult"): "views of two commands: one has names, the other counts",
    ("StageResult", "ExpectedStage"): "a result, and those of its fields that an author states",
    ("StatedDraft", "DraftFacts"): "what users write, and what the gates read: no field is open",
    ("StatusCondition", "Condition"): "a status in a file of people, and one that fanout builds",
    ("TargetViewSpec", "PublicationSpec"): "a target may have no variant, a publication has one",
}
NO_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "core", "misc"}
# What is loaded when it is wanted is loaded by name here.
LOADS_BY_NAME = {PACKAGE / "cli" / "lazy_import.py"}
# re2 costs every process 2.5 MB, and only search-replace needs it; GitPython takes 45 ms, and
# a pass without work on local repositories starts no git; ruamel.yaml takes 10 ms, and hardly any
# edit needs a round trip (decision 0046); PyJWT is an extra.
LOADS_LATE = [
    PACKAGE / "forge" / "github_app.py",
    PACKAGE / "git" / "git_command.py",
    PACKAGE / "package" / "manifest.py",
    PACKAGE / "variants" / "functions" / "search_replace.py",
]
# Short private functions that are used once in their module, and why each has a name.
SHORT_HELPERS = {
    "_read_duration": "validates a type of pydantic",
    "_reject_duplicate_keys": "the hook of a JSON decoder for pairs",
    "_write_instant_or_distance": "serializes a type of pydantic",
}
BACK_DOORS = {"TYPE_CHECKING", "__import__", "import_module"}

SOURCES = sorted(
    path
    for folder in ("fanout", "benchmarks", "demo", "docs", "tests")
    for path in (ROOT / folder).rglob("*.py")
)


def layers() -> list[list[str]]:
    """The layers of the contract, from the top, with the packages of each."""
    config = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    contracts = config["tool"]["importlinter"]["contracts"]
    contract = next(item for item in contracts if item["type"] == "layers")
    return [[package.strip() for package in layer.split("|")] for layer in contract["layers"]]


def test_a_module_is_one_concept():
    """A longer one has more than one."""
    sizes = {name_of(path): read_source(path).size for path in SOURCES}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


def test_a_function_fits_on_a_screen():
    long = [
        f"{name_of(path)}:{function.line}: {function.name}"
        for path in SOURCES
        for function in read_source(path).functions
        if function.size >= LONGEST_FUNCTION
    ]
    assert long == []


def test_sizes_do_not_count_what_explains():
    """The tests of sizes would pass if nothing were counted."""
    source = read_source(ROOT / "tests" / "source_files.py")
    (size,) = [it.size for it in source.functions if it.name == "_take_docstrings"]
    assert size == 10
    assert size < source.size < len(text_of(ROOT / "tests" / "source_files.py").splitlines())


def test_a_private_function_that_is_used_once_is_long_or_has_a_reason():
    """A short one is read faster where it is used."""
    helpers = [
        (name, name_of(path)) for path in MODULES for name in read_source(path).short_helpers
    ]
    allowed = SHORT_HELPERS.keys()
    assert [f"{path}: {name}" for name, path in helpers if name not in allowed] == []
    assert allowed - {name for name, _ in helpers} == set(), "entries of the lists without a use"


def fields_of_classes() -> dict[str, set[str]]:
    """The fields that each class of fanout declares itself, without the parts of an object."""
    return {
        f"{name_of(path)}: {it.name}": {
            field.target.id
            for field in it.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        }
        - {"_", "kind", "spec", "status", "metadata"}
        for path in MODULES
        for it in ast.parse(text_of(path)).body
        if isinstance(it, ast.ClassDef)
    }


def test_no_two_classes_say_the_same():
    """One fact has one shape: classes with most fields in common are named, with the reason."""
    fields = {name: own for name, own in fields_of_classes().items() if len(own) >= 4}
    alike = {
        (one.rpartition(" ")[2], other.rpartition(" ")[2]): f"{one}, {other}"
        for (one, mine), (other, theirs) in combinations(fields.items(), 2)
        if len(mine & theirs) >= max(4, 0.6 * min(len(mine), len(theirs)))
    }
    assert SEPARATE_CLASSES.keys() <= alike.keys()
    assert [places for pair, places in alike.items() if pair not in SEPARATE_CLASSES] == []
    assert len(SEPARATE_CLASSES) <= 20


def traversals(tree: ast.AST) -> list[int]:
    """Lines where the variants or stages that the gates decided about are gone through.

    That is a call of `values` or `items` of a field `variants` or `stages`, as in
    `decision.variants.values()`. Reading the decision about one variant by its name is none.
    """
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("values", "items")
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in ("variants", "stages")
    ]


def test_above_the_pass_only_present_traverses_a_result():
    """Whatever else shows a result reads entries of `present`: a column or count has one place."""
    contract = layers()
    [position] = [depth for depth, layer in enumerate(contract) if "present" in layer]
    above = {package for layer in contract[:position] for package in layer}
    places_by_module = {
        name_of(path): lines
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] in above
        and (lines := traversals(ast.parse(text_of(path))))
    }
    assert places_by_module == {}


def test_a_traversal_is_found():
    """The rule would hold if nothing were found."""
    line = "names = [it for it in item.decision.variants.values()]"
    assert traversals(ast.parse(line)) == [1]
    assert traversals(ast.parse("decision.variants[name].state")) == []


def test_a_module_says_what_it_is_for():
    assert [name_of(path) for path in MODULES if not read_source(path).has_docstring] == []


def test_a_module_s_name_says_what_is_in_it():
    parts = {path: set(path.relative_to(PACKAGE).with_suffix("").parts) for path in MODULES}
    assert [name_of(path) for path, names in parts.items() if names & NO_NAMES] == []


def test_imports_are_at_the_top():
    hidden = [name_of(path) for path in MODULES for _ in read_source(path).local_imports]
    assert hidden == list(map(name_of, LOADS_LATE))


def test_no_import_is_for_types_only_or_by_name():
    problems = []
    for path in MODULES:
        refused = {"TYPE_CHECKING"} if path in LOADS_BY_NAME else BACK_DOORS
        problems += [
            f"{name_of(path)}: {name}" for name in read_source(path).names.keys() & refused
        ]
    assert problems == []


def test_a_single_module_of_the_command_line_loads_kube():
    """All that differs between files and a cluster is behind it."""
    loads = re.compile(r'"kube\.|fanout\.kube import|from fanout\.kube')
    modules = [path for path in (PACKAGE / "cli").rglob("*.py") if loads.search(text_of(path))]
    assert [name_of(path) for path in modules] == [name_of(PACKAGE / "cli" / "declarations.py")]


def test_no_module_imports_the_root():
    """It holds the version; importing it from below is how circles begin."""
    importers = [
        f"{name_of(path)}:{line}" for path in MODULES for line in read_source(path).root_imports
    ]
    assert importers == []


def test_every_directory_with_code_is_a_package():
    """The import contracts do not look into directories that are not."""
    folders = {path.parent for path in MODULES}
    assert [name_of(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_architecture_page_has_every_package_in_its_layer():
    page = text_of(ROOT / "docs" / "architecture.md")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", page, flags=re.MULTILINE)
    contract = layers()
    expected = [
        (str(len(contract) - depth), package)
        for depth, layer in enumerate(contract)
        for package in layer
    ]
    assert rows == expected


def test_every_package_of_the_contract_exists():
    packages = {package for layer in layers() for package in layer}
    existing = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert packages == {name for name in existing if not name.startswith("__") and name != "py"}


WRITTEN = sorted(
    path
    for pattern in ("Makefile", "Containerfile", "*.md", "*.toml", ".ci/run", "requirements/*.txt")
    for path in ROOT.glob(pattern)
) + sorted(
    path
    for folder in ("fanout", "benchmarks", "demo", "docs", "policies", "tests")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".yaml", ".toml"}
)
# Composed, so that this file does not name what it looks for.
MACHINE_PATH = re.compile("|".join(f"/{name}/" for name in ("work", "home", "root", "Users")))


def test_no_text_names_a_place_on_somebody_s_machine():
    assert [name_of(path) for path in WRITTEN if MACHINE_PATH.search(text_of(path))] == []


def test_lock_files_name_no_registry():
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert locks
    for lock in locks:
        text = text_of(lock)
        assert "://" not in text
        assert not re.search(r"^--(?!hash)", text, flags=re.MULTILINE)


def test_no_page_has_the_marks_of_an_unfinished_merge():
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    marked = re.compile(r"(?m)^(<{7} |>{7} |={7}$)")
    assert [name_of(path) for path in pages if marked.search(text_of(path))] == []


def test_groups_of_tests_are_kept_by_pytest_xdist(request):
    """Some versions of pytest and pytest-xdist ignore groups together, without a word."""
    if hasattr(request.config, "workerinput"):
        assert request.node.nodeid.endswith("@sources")
