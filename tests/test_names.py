"""Names of modules and public classes: each is unique, and made of words of the field.

A word that is not listed here is either a word of the field and is added, or is replaced by one
(`docs/glossary.md`).
"""

import re
from collections import defaultdict
from pathlib import Path

from source_files import MODULES, ONE_PROCESS, PACKAGE, ROOT, TESTS, name_of, read_source

pytestmark = ONE_PROCESS

# Kubernetes, Git, kpt, Porch, Argo CD, Flux and Kargo, and the formats and protocols they use.
FIELD = """
    active adoption annotations api approval approvals approve approver blob blobs branch cel chain
    admission check
    checking checks cli clone cluster commit completed condition conditions config configuration
    conflict conflicts container context controller crd crds credentials cron
    deadlines declaration declarations declared declined
    delete deletion deletions delta dependencies dependency deployment diff directory documentation
    downstream draft
    drafted drafts due duplicate duration event events exec executable expired expression
    expressions fetch field fields file files
    finalized finalizer finalizers
    forge
    freight function functions git group groups head heads health history hook hooks http
    identity image interpreter jsonpath
    import in injectable injection injector jinja join json junit kargo key keys kind kinds kpt
    kptfile krm kube kubeconform kubernetes label labels lease
    list manifest manifests map mapping merge
    merged merger mirror name names namespace object objects on operator operators origin orphan
    orphaned outage
    overlay overridable override owned owner ownership pack package packages patch path
    paths
    phase phases pipeline plan planner policies policy porch probe prober probes project prometheus
    promote promotion propagation publication publications published publisher pull push pushed
    pushes
    queries query reason reasons reconcile reconciler ref reference references refs release
    released reload remote removal removals remove render rendered renderer rendering renderings
    repack
    replace replacement replacements repository request requests requeue require required
    requirement
    resolve resolved resource resources resume retention retries retry
    reverted revision revisions revoke rewound
    rollback rollbacks rollout runtime sandbox schedule scheduled schema schemas scope scopes
    sealed secret secrets selection selector served setter setters skip snapshot source sources spec
    specs stage stages starlark status stopped strategy suspend svg sync tag tags target targets
    template templates test timeout timestamp trailer trailers transition transport tree trees
    trigger triggers uint unavailable update upsert upstream url urls validate validation validators
    verdict verdicts version versions warehouse watch watched waves wildcard window windows withdraw
    work yaml
"""

# The vocabulary of fanout's own: see docs/glossary.md.
GLOSSARY = """
    accept after aggregates budget calendar calendars candidate compiled damage decided decision
    decisions eligibility evidence facts fanout flight forecast gate gates grant growth held
    hold holds integrity isolation memo memos migrate moment move moves next noop observation
    observed observer order pass pending per pin pins pristine record recorded recording records
    installation
    report reported scenario scenarios selected sets shard simulation soak stated sweep
    tallied tally timetable trace traces undecided variant variants vendor vocabulary world
"""

# Terms of programs and of data.
TECHNICAL = """
    blocker blockers commands counts display explained explainer fleet names note screen unblock
    access accounting action actions address addresses aggregation alignment ast attributes
    author auto automatic awaited backend backoff barrier bars base baseline batch bug builder
    built builtin cache canonical case catalog changed chars class cleanup client close closed
    closures characters claims code connection
    collisions color column command comment completion confirmation content control conversion
    counts
    creation creator
    converted counter counters cross damaged detection detector diagnostics digest discovery disk
    dispute disputes document documents dot drawing
    durations edge edit editor edits element embedded encoding engine
    entry error errors evaluation evaluator execution executor exit expectation expectations
    failure failures fairness fallback fast fastimport filter finding findings fire flag flags flow
    format graph hashes
    hosted idempotency ids index input inputs instant intake interface inventory item layout layouts
    lazy limit limited limiter limits line listed listen listing location locations lock log logged
    logging lookup
    mermaid monitoring
    delivery metric notification notifications notifier notify outbox pause send sender thread
    loop machine main markdown marker message messages meta method metrics mode model naming node
    nodes notes operation option options outcome output oversize parameter parameterized parameters
    parse parsed patterns percentages
    period permission placeholder point points pool ports position preparation prepared present
    previous printer problem process program programs progress protocol queue range reader
    receiver
    reading readings rearranged rearrangement recovery recurring redaction redactor regex
    regexsyntax remedies remedy
    registry remark remarks repeat reporter resolution response responses result results rewrite
    root round rule rules run runner scalar scalars script search searched sequence serialized
    series session set setting settings setup shape shared size span serve server signature
    signatures
    routes sorting
    splice startup state statement static statuses step steps
    store stored style subject submitted substring syntax table tables task
    telemetry terminal text texts
    throttling time timeline timer times timestamps token tokens traceback trip type types union
    unit units user value
    values variables verb verbs view views violation warnings whole wide worker workers writer zone
"""

# Plain English: adjectives, prepositions and verbs that qualify a noun.
ENGLISH = """
    abandoned advance ages allowed alternative answer applicable apply assembled assembly continuous
    settling
    assertion assertions at blocked cannot cause change changes choice choices compared create day
    denied
    described difference disabled dry earlier effect ended ensure exceeded exclusive expected keyed
    explain explanation external filled first free get guarded holder ignored invalid large local
    located lost malformed match matchable matching misplaced moved no not open other pair plain
    planned played player refusals
    refused returned side spelling suggestions too uncertain undeclared
    unfit unknown unmatched unreadable unsuitable unsupported varying visible wait waiting winner
    wording written
"""
# Programs that host repositories, and the calls to them.
FORGES = """
    accepted app breaker call circuit closing count deferred enforcement estimate gitea github
    gitlab governor host hosts hub installation installations limited mergeability part poll
    polled queued quota rate refusal request requests review reviews route sliding
"""
ALLOWED = frozenset(f"{FIELD} {GLOSSARY} {TECHNICAL} {ENGLISH} {FORGES}".split())

# Private words of earlier versions: the guide to words has another word for each.
REPLACED = """
    absence alien alike arrivals barred becoming beginnings blanks book books called census child
    clearing copies crew departing desk doubt ending ends fate fault faults floor foreign forgotten
    form former found gone ground heard heeds house instants journal judge judgement keeping kept
    known leaf leaves leavings ledger left lifts look looks mould nouns orders outline own places
    plant publishers quiet reads recalled registrar rest room said sample settle shut sides slot
    slots spoken standing stock strays stranger taking there told unmeant wake way whereabouts
    workshop
"""
# The sentence of a test names its subject: it does not begin with a pronoun or a relative.
PRONOUNS = """
    anybody anyone anything both either everybody everyone everything he her here him his it its
    itself mine neither nobody none nothing one ones our ours she somebody someone something such
    that their theirs them there these they this those
    also nor so while
    how what whatever when whenever where wherever whether which whichever who whoever whom whose
    why
"""
# Folders of tests whose files are named by what they play; the others are named like packages, and
# their files like a module of the package, with an aspect behind it: `test_cron_schedule_fires.py`.
STORY_FOLDERS = {
    "golden": "cases in fixtures, each played as a whole",
    "kube": "stories on a real kube-apiserver, of the package, the controller and the commands",
    "probes": "aspects of one module",
    "servers": "programs that other tests start",
    "story": "stories of whole commands on real repositories",
}
# Names of files that are no modules.
ASPECTS = {
    "github": "the double of GitHub, which tests of several packages ask",
    "sentences": "messages of a package, word for word, which several of its modules raise",
}
# Files that are named otherwise, each with the reason.
NAMED_OTHERWISE = {
    "tests/cli/test_monitoring.py": "alert rules and the dashboard in deploy/, which no module has",
}
WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def public_classes() -> list[tuple[str, str]]:
    """Return the name of each public class with the module that defines it."""
    return [(name, name_of(path)) for path in MODULES for name in read_source(path).public_classes]


def module_names() -> list[tuple[str, str]]:
    """Return the base name of each module; packages and verbs may share theirs with others."""
    return [
        (path.stem, name_of(path))
        for path in MODULES
        if not path.stem.startswith("__") and path.parent.name != "verbs"
    ]


def folder_names() -> set[str]:
    return {path.parent.name for path in MODULES}


def shared(names: list[tuple[str, str]]) -> dict[str, list[str]]:
    locations = defaultdict(list)
    for name, location in names:
        locations[name].append(location)
    return {name: paths for name, paths in locations.items() if len(paths) > 1}


def words_of(name: str) -> set[str]:
    """Split a name at underscores and capitals: `KRMObject` has the words krm and object."""
    return {word.lower() for word in WORD.findall(name)}


def subjects_of(folder: str) -> set[str]:
    """Return the names of the modules and packages of a package, and of verbs for the commands."""
    paths = [path for path in MODULES if path.is_relative_to(PACKAGE / folder)]
    names = {path.stem.rstrip("_") for path in paths if not path.stem.startswith("__")}
    return names | {path.parent.name for path in paths}


def is_named_like(name: str, subject: str) -> bool:
    return name == subject or name.startswith(f"{subject}_")


def is_named_well(path: Path) -> bool:
    """Return whether a test file of a package is named like a module, or tests a page."""
    name = path.stem.removeprefix("test_")
    if re.search(r"_(pages?|guide)$", name):
        return True
    package = path.relative_to(ROOT / "tests").parts[0]
    return any(is_named_like(name, it) for it in subjects_of(package) | ASPECTS.keys())


def test_no_two_modules_share_a_name():
    assert shared(module_names()) == {}


def test_no_two_public_classes_share_a_name():
    assert shared(public_classes()) == {}


def test_names_are_made_of_words_of_the_field():
    names = [*module_names(), *public_classes(), *((name, "") for name in folder_names())]
    strange = {name: sorted(words_of(name) - ALLOWED) for name, _ in names}
    assert {name: words for name, words in strange.items() if words} == {}


def test_no_replaced_word_is_allowed():
    assert sorted(ALLOWED & set(REPLACED.split())) == []


def test_no_test_begins_with_a_pronoun_or_a_relative():
    """`test_a_removed_draft_is_deleted`, not `test_it_is_deleted` or `test_what_is_removed_…`."""
    riddles = [
        f"{name_of(path)}:{function.line}: {function.name}"
        for path in TESTS
        for function in read_source(path).functions
        if function.name.startswith("test_") and function.name.split("_")[1] in PRONOUNS.split()
    ]
    assert riddles == []


def test_a_test_file_is_named_like_a_module_a_command_or_a_story():
    """A reader of a module finds its tests by name, and a failing test names what fails."""
    below_packages = [
        path
        for path in TESTS
        if path.parent != ROOT / "tests"
        and path.relative_to(ROOT / "tests").parts[0] not in STORY_FOLDERS
    ]
    strange = {name_of(path) for path in below_packages if not is_named_well(path)}
    assert strange == NAMED_OTHERWISE.keys()


def test_every_listed_class_and_module_is_counted():
    """The scan would pass if it found nothing."""
    assert {"KRMObject", "Mirror", "Verdict"} <= {name for name, _ in public_classes()}
    assert {"forecast", "stages"} <= {name for name, _ in module_names()}
    assert words_of("KRMObject") == {"krm", "object"}
    assert words_of("name_lookup") == {"name", "lookup"}
