"""What people changed in a package that is taken over, though it may have been rendered since.

Who clones a package commits it as it came, or as its pipeline leaves it. Only against what they
committed first are people's edits edits, and objects that a function renames the same objects.
"""

from collections.abc import Iterator, Mapping

from fanout.api.paths import path_inside
from fanout.api.reasons import Reason
from fanout.errors import FanoutError, InvalidInput, Where
from fanout.package.edits import Edit
from fanout.package.kptfile import NAME, kptfile_of
from fanout.package.kptfile_rules import functions_of
from fanout.package.manifests import Manifest
from fanout.package.merge.documents import Unit
from fanout.package.merge.identity import identity_of
from fanout.package.merge.likeness import distance, identities, unmatched
from fanout.package.merge.marks import without_marks
from fanout.plan.adoption import as_cloned
from fanout.plan.merging import Change, Files
from fanout.values import frozen
from fanout.variants.context import CONTEXT
from fanout.variants.model import Limits
from fanout.variants.own_pipeline import own_pipeline
from fanout.variants.questions import Answers
from fanout.variants.results import refuse_errors

_REMEDY = (
    "render the package with the pipeline that it has upstream at its upstreamLock (as `kpt fn"
    " render` does), or give the objects the names that they have then, and commit it"
)


@frozen
class _Forms:
    """What a clone may have been before people changed it."""

    raw: Files
    rendered: Files  # by upstream's pipeline
    rendered_here: Files  # by the clone's, which people may have changed
    problem: FanoutError | None  # why one of the two could not be had


def change_since_cloned(origin: Files, local: Files, limits: Limits, answers: Answers) -> Change:
    """The package as it was first committed, and as it is now.

    The first is upstream's files, raw or rendered by the pipeline that they came with, whichever
    the package is nearer to. A pipeline that people changed is their edit, and so is what it did.
    Raises InvalidInput (AdoptionBaseMissing) where objects would not be found again, and Unanswered
    where a function asks for something first.
    """
    raw = as_cloned(origin, local)
    if not any(b"pipeline" in data for files in (raw, local) for data in _kptfiles(files).values()):
        return raw, local
    forms = _forms(raw, local, limits, answers)
    base = raw
    if distance(forms.rendered, local) <= distance(raw, local) and forms.rendered != raw:
        base, local = forms.rendered, without_marks(local, identities(forms.rendered))
    if base is raw:
        _refuse_renamed(local, forms)
    _refuse_strangers(base, local, forms)
    return base, local


def _kptfiles(files: Files) -> dict[str, bytes]:
    return {p: data for p, (_, data) in files.items() if p.rpartition("/")[2] == NAME}


def _forms(raw: Files, local: Files, limits: Limits, answers: Answers) -> _Forms:
    rendered, problem = _rendered(raw, _clones_own(raw, local), limits, answers)
    configured = _configured_here(local)
    if all(raw.get(path) == content for path, content in configured.items()):
        return _Forms(raw, rendered, rendered, problem)
    inputs = {**_clones_own(raw, local), **configured}
    here, trouble = _rendered(raw, inputs, limits, answers)
    return _Forms(raw, rendered, here, problem or trouble)


def _clones_own(raw: Files, local: Files) -> Files:
    """What functions may read that says which clone it is, and is nobody's edit."""
    return {**raw, CONTEXT: local[CONTEXT]} if CONTEXT in local else raw


def _configured_here(local: Files) -> Files:
    """The clone's Kptfiles, and the files that their functions are configured by."""
    found = {path: local[path] for path in _kptfiles(local)}
    for path, (_, data) in list(found.items()):
        for name in _configuring(path, data):
            if name in local and name != CONTEXT:
                found[name] = local[name]
    return found


def _configuring(path: str, data: bytes) -> Iterator[str]:
    try:
        value = kptfile_of(Manifest.parse(data, path)).value
    except FanoutError:
        return  # whoever renders it tells of it
    for _, entry in functions_of(value):
        name = entry.get("configPath") if isinstance(entry, Mapping) else None
        if isinstance(name, str):
            yield path[: -len(NAME)] + path_inside(name)


def _rendered(
    raw: Files, inputs: Files, limits: Limits, answers: Answers
) -> tuple[Files, FanoutError | None]:
    """Upstream's files as a pipeline leaves them; as they are, with what is in the way of it.

    Kptfiles and the package context stay as they are upstream.
    """
    try:
        after, results = own_pipeline(_without_validators(inputs), limits, answers)
        refuse_errors(results)
    except FanoutError as problem:
        return raw, problem
    kept = {path for path in {*raw, *inputs} if path == CONTEXT or path.rpartition("/")[2] == NAME}
    files = {path: content for path, content in after.items() if path not in kept}
    return {**files, **{path: raw[path] for path in kept if path in raw}}, None


def _without_validators(files: Files) -> Files:
    """They change nothing, and what they think of a package of that time does not matter."""
    found: dict[str, tuple[str, bytes]] = {}
    for path, data in _kptfiles(files).items():
        manifest = Manifest.parse(data, path)
        document = kptfile_of(manifest)
        pipeline = document.value.get("pipeline")
        if isinstance(pipeline, dict) and "validators" in pipeline:
            edit = Edit(document.index, ("pipeline", "validators"))
            found[path] = files[path][0], manifest.edited([edit])
    return {**files, **found}


def _refuse_renamed(local: Files, forms: _Forms) -> None:
    """No object stands here raw that a rendering calls otherwise: it would bring it once more.

    Another namespace alone is followed by the merge.
    """
    apart = unmatched(forms.raw, forms.rendered)
    kinds = {unit.key[1:3] for unit in apart.new}
    here = {identity for _, identity in identities(local)}
    for unit in apart.gone:
        if unit.key[1:3] in kinds and _names(unit) & here:
            raise _refused(unit, "has another name once the package's pipeline has run")


def _refuse_strangers(base: Files, local: Files, forms: _Forms) -> None:
    """Nothing is taken for added here that is upstream's under another name.

    It would stand in the draft beside its double, or its edits would go with it.
    """
    apart = unmatched(base, local)
    elsewhere = set[object]()
    for form in (forms.raw, forms.rendered, forms.rendered_here):
        elsewhere |= {identity for _, identity in identities(form)}
    strange = [unit for unit in apart.new if apart.gone and _names(unit) & elsewhere]
    if strange:
        raise _refused(
            strange[0], "is upstream's, under another name than it has in the rest of the clone"
        )
    if forms.problem is not None and apart.gone and apart.new:
        raise _refused(
            apart.new[0],
            "may be upstream's under another name, and the pipeline that would show it cannot be"
            f" run: {forms.problem}",
        )


def _names(unit: Unit) -> set[object]:
    return {unit.key[1:5], identity_of(unit.value.data)}


def _refused(unit: Unit, problem: str) -> InvalidInput:
    where = Where(unit.name, "", unit.document.file, unit.document.line + 1)
    return InvalidInput(
        f"the object {problem}", reason=Reason.ADOPTION_BASE_MISSING, remedy=_REMEDY, where=where
    )
