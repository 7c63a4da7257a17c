"""Pages that are generated say what the program says; links lead somewhere."""

import ast
import re
import runpy
from pathlib import Path

import pytest
import yaml

from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.telemetry.metrics import Counters

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# Pages for maintainers, which name modules as `package/module.py` and folders as `package/folder/`.
MODULE_PAGES = ["CONTRIBUTING.md", "docs/architecture.md", "docs/memo.md"]
PATH = re.compile(r"`([\w./-]+(?:\.py|/))`")


def test_generated_pages_are_as_make_docs_writes_them():
    pages = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    stale = [
        page.name
        for page, text in pages.items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make docs`"


def anchors(page):
    """Return the anchors that a forge gives to the headings of a page."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", it).replace(" ", "-").lower() for it in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
    ours = [
        (page.parent / name if name else page, part) for name, part in links if "://" not in name
    ]
    assert [str(path) for path, _ in ours if not path.exists()] == []
    sections = {(path, part) for path, part in ours if part and path.suffix == ".md"}
    assert [part for path, part in sections if part not in anchors(path)] == []


# Kinds that Porch also has: kubectl takes Porch's, whose group is the first by name.
AMBIGUOUS = re.compile(r"\bkubectl\b[^`\n]*[ ,](?:repositor(?:y|ies)|packagevariants?)(?=[ ,/\n])")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_name_the_group_of_kinds_that_porch_also_has(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    assert AMBIGUOUS.findall(text) == []


def linked_pages(page):
    """Return the pages that a page links to, relative to the root."""
    targets = re.findall(r"\]\(([^)#\s]+\.md)", page.read_text(encoding="utf-8"))
    paths = [(page.parent / it).resolve() for it in targets if "://" not in it]
    return {str(path.relative_to(ROOT)) for path in paths}


def test_the_index_links_every_page():
    listed = linked_pages(ROOT / "docs" / "README.md") | {
        "docs/README.md",
        "docs/reference/performance-notes.md",  # the last section of performance.md
    }
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    apart = {it for it in pages if it.startswith(("docs/decisions/", "docs/reference/kinds/"))}
    assert sorted(pages - apart - listed) == []


def test_the_list_of_decisions_has_each_with_its_title():
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert pages
    rows = [
        f"| [{number}]({path.name}) | {title} |"
        for path in pages
        for head in [path.read_text(encoding="utf-8").partition("\n")[0]]
        for number, title in [head.removeprefix("# ").split(": ", 1)]
    ]
    text = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("| [")] == rows


def test_a_decision_begins_with_what_was_decided():
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    starts = {page.name: page.read_text(encoding="utf-8").split("\n\n")[1] for page in pages}
    assert [name for name, text in starts.items() if not re.match(r"[\w`]", text)] == []


def test_the_expressions_and_templates_that_are_shown_compile():
    text = (ROOT / "docs" / "concepts" / "expressions.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    lines = [yaml.safe_load(line) for line in blocks[0].splitlines()]
    expressions = [value for line in lines for value in line.values()]
    templates = list(yaml.safe_load(blocks[1]).values())
    with ProcessSandbox(WorkerLimits(), Counters()) as sandbox:
        assert sandbox.compile(expressions, templates) == {}
    assert len(expressions) >= 5


def named_paths(text):
    """The modules and folders that a text names, and the test files in its commands."""
    return {*PATH.findall(text), *re.findall(r"tests/[\w/]+\.py", text)}


@pytest.mark.parametrize("page", MODULE_PAGES)
def test_pages_for_maintainers_name_modules_that_exist(page):
    paths = named_paths((ROOT / page).read_text(encoding="utf-8"))
    roots = (ROOT, ROOT / "fanout")
    assert paths
    assert sorted(it for it in paths if not any((root / it).exists() for root in roots)) == []


def is_memoizing(node):
    """Is this a class named as a memo or cache, or a function that is cached by its arguments?"""
    if isinstance(node, ast.ClassDef):
        return bool(re.search(r"(Memo|Cache)s?$", node.name))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call):
        return ast.unparse(node.func.func) == "lru_cache"
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else ()
    return any(re.match(r"(lru_)?cache\b", ast.unparse(it)) for it in decorators)


def test_the_page_of_memos_names_every_module_that_keeps_something():
    named = named_paths((ROOT / "docs" / "memo.md").read_text(encoding="utf-8"))
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "fanout").rglob("*.py")}
    keeping = {
        str(path.relative_to(ROOT / "fanout"))
        for path, text in texts.items()
        if re.search("Memo|[cC]ache", text) and any(map(is_memoizing, ast.walk(ast.parse(text))))
    }
    assert sorted(keeping - named) == []


BOUND = re.compile(r"`(_?[A-Z][A-Z_]+)`, ([\d,]+)(?: (Ki|KiB|MiB))?\b")
UNITS = {"": 1, "Ki": 1 << 10, "KiB": 1 << 10, "MiB": 1 << 20}


def constant(module, name):
    """The number that a module assigns to a name, or None."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if name in [getattr(target, "id", None) for target in targets]:
            return eval(ast.unparse(node.value))
    return None


BOUNDS = [
    (sorted(named_paths(line)), name, int(number.replace(",", "")) * UNITS[unit])
    for line in (ROOT / "docs" / "memo.md").read_text(encoding="utf-8").splitlines()
    for name, number, unit in BOUND.findall(line)
]


def test_the_page_of_memos_has_bounds():
    assert len(BOUNDS) >= 10


@pytest.mark.parametrize(("modules", "name", "bound"), BOUNDS)
def test_the_page_of_memos_has_the_bounds_of_the_code(modules, name, bound):
    assert bound in [constant(ROOT / "fanout" / module, name) for module in modules]


def recipe(target):
    """The commands of a target of the Makefile, those of its targets before it first."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    match = re.search(rf"^{target}:([^#\n]*).*\n((?:\t.*\n)+)", text, flags=re.MULTILINE)
    assert match is not None, target
    before = [line for name in match[1].split() if "/" not in name for line in recipe(name)]
    return [*before, *(line.strip() for line in match[2].splitlines())]


SOURCES = sorted(it for folder in ("fanout", "tests") for it in (ROOT / folder).rglob("*.py"))


def test_pages_that_docstrings_and_comments_name_are_in_this_repository():
    """A reader of the code can open what it refers to."""
    texts = {it: it.read_text(encoding="utf-8") for it in SOURCES}
    pages = {page for it in texts.values() for page in re.findall(r"\bdocs/[\w/-]+\.md\b", it)}
    assert len(pages) > 30
    assert [page for page in sorted(pages) if not (ROOT / page).exists()] == []
    elsewhere = re.compile(r"\b[Dd]esign[\s#]*§|\bdesign-forges\b|\.md\s§")
    assert [str(it) for it, text in texts.items() if elsewhere.search(text)] == []


def test_pre_commit_runs_what_make_check_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    tools = {"$(PY)": ".venv/bin/python", "$(VENV)": ".venv"}
    commands = recipe("check")
    for variable, value in tools.items():
        commands = [command.replace(variable, value) for command in commands]
    assert [hook["entry"] for hook in hooks] == commands
    assert not any(hook["pass_filenames"] for hook in hooks)


# Words of the API server and not of fanout, which tests of tests/kube meet.
OTHERS_WORDS = (" is forbidden", "cannot list resource", "conversion webhook", " not found")


def test_messages_of_the_troubleshooting_page_are_those_of_the_code():
    page = (ROOT / "docs/operations/kubernetes-troubleshooting.md").read_text(encoding="utf-8")
    table = page.partition("\n## Errors after the installation\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("|")][2:]
    messages = [message for row in rows for message in re.findall(r"`([^`]+)`", row)]
    assert len(messages) >= len(rows) >= 12
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "fanout").rglob("*.py"))
    )
    unknown = [
        message
        for message in messages
        if not any(words in message for words in OTHERS_WORDS) and message.strip(" …") not in code
    ]
    assert unknown == []


FIELD_PAGE = ROOT / "docs/reference/kinds/fanout-configuration.md"
FIELD_PATHS = set(
    re.findall(r"^\| `([^`]+)` \|", FIELD_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
)
FIELD_NAMES = {name.removesuffix("[]") for path in FIELD_PATHS for name in path.split(".")}
FILE_SUFFIXES = (".json", ".yaml", ".md", ".py", ".git")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_fields_of_the_configuration_that_pages_name_exist(page):
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    quoted = re.findall(r"`([\w.\[\]*]+)(?:: [^`]+)?`", text)
    top_fields = {it.partition(".")[0].removesuffix("[]") for it in FIELD_PATHS if "." in it}
    paths = {
        it.replace("[*]", "[]")
        for it in quoted
        if re.split(r"[.\[]", it)[0] in top_fields and "." in it
    }
    assert {it for it in paths - FIELD_PATHS if not it.endswith(FILE_SUFFIXES)} == set()
    spellings = {name.lower(): name for name in FIELD_NAMES if name.lower() != name}
    names = {name for it in quoted for name in re.split(r"[.\[\]*]+", it) if name}
    assert {it for it in names if it[0].islower() and spellings.get(it.lower(), it) != it} == set()


def test_the_page_about_size_has_limits_that_the_benchmark_kept():
    page = (ROOT / "docs/operations/kubernetes-sizing.md").read_text(encoding="utf-8")
    benchmark = (ROOT / "docs/reference/benchmarks-kube.md").read_text(encoding="utf-8")
    (memory,) = re.findall(r"less than (\d+) MB", page)
    (processor,) = re.findall(r"less than (\d+) seconds of processor time", page)
    (share,) = re.findall(r"up to (\d+) % more", page)

    def measured(*names):
        rows = dict(re.findall(r"^(\S+) +([\d.]+) ", benchmark, flags=re.MULTILINE))
        return max(float(rows[name]) for name in names)

    assert measured("controller/memory", "fan-out-of-cluster/memory") < float(memory)
    assert measured("fan-out-of-cluster/processor") < float(processor)
    assert measured("statuses/memory-to-files", "process/peak-to-files") < 1 + float(share) / 100
