"""From targets and answers to variants: one template applied to one target at a time."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from fanout.api.pipeline import RESERVED_KEYS
from fanout.api.repository import Repository
from fanout.api.targets import FunctionTemplate, TargetEntry
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.package.paths import check_path
from fanout.selection.blanks import Blanks, NoVariant, Values, kind_of, what_helps
from fanout.selection.functions import function_of
from fanout.selection.model import Broken, Function, Injector, TargetFailure, VariantSpec
from fanout.selection.naming import variant_name
from fanout.selection.questions import Answers
from fanout.selection.targets import Target

_Part = TypeVar("_Part")
_RESERVED = frozenset(RESERVED_KEYS)


class _Form:
    """An entry's template with its blanks; each part answers what it is for a target, by its key.

    All parts may raise NoVariant.
    """

    def __init__(self, number: int, entry: TargetEntry, answers: Mapping[str, Values]) -> None:
        self._blanks = blanks = Blanks(number, answers)
        self._entry = entry
        self._offline = answers.get(entry.offline_when, {}) if entry.offline_when else {}
        template = entry.template
        written, pipeline = template.downstream, template.pipeline
        self.repository = blanks.blank(
            written.repository, written.repository_expr, "downstream.repositoryExpr"
        )
        self.package = blanks.blank(written.package, written.package_expr, "downstream.packageExpr")
        self.stage = blanks.blank(template.stage, template.stage_expr, "stageExpr")
        self.priority = blanks.blank(template.priority, template.priority_expr, "priorityExpr")
        self.context = self._context()
        self.remove_keys = self._remove_keys()
        self.mutators = self._functions("mutators", pipeline.mutators)
        self.validators = self._functions("validators", pipeline.validators)
        self.injectors = self._injectors()
        labels = blanks.map(template.labels, template.label_exprs, "labelExprs")
        self.labels = _part(labels.filled, varies=bool(labels.pairs))
        annotations = blanks.map(template.annotations, template.annotation_exprs, "annotationExprs")
        self.annotations = _part(annotations.filled, varies=bool(annotations.pairs))

    def offline(self, key: str) -> tuple[bool, str]:
        """Is the target offline, and if nobody can say: why not? Then it counts, and is held."""
        expression = self._entry.offline_when
        if not expression:
            return False, ""
        value = self._offline.get(key)
        if isinstance(value, Broken):
            return False, f"{expression}: {what_helps(value)}"
        if not isinstance(value, bool):
            problem = f"yields {kind_of(value)} where true or false is needed"
            return False, f"{expression}: {problem}; compare it with something"
        return value, ""

    def path(self, directory: str, package: str) -> str:
        """Where the package goes below the repository's directory."""
        problem = check_path(package)
        if problem:
            written = self._entry.template.downstream
            name = "packageExpr" if written.package_expr else "package"
            sentence = f"{problem}; write a relative path like team/monitoring"
            raise NoVariant("InvalidPath", sentence, self._blanks.place(f"downstream.{name}"))
        return f"{directory.strip('/')}/{package}".lstrip("/")

    def _context(self) -> Callable[[str], dict[str, str]]:
        """packageContext.data and dataExprs; the keys that kpt writes itself are refused."""
        written = self._entry.template.package_context
        field = "packageContext.dataExprs"
        blank_map = self._blanks.map(written.data, written.data_exprs, field)

        def make(key: str) -> dict[str, str]:
            data = blank_map.filled(key)
            taken = _RESERVED & data.keys()
            if taken:
                raise NoVariant(
                    "ExpressionError",
                    f"yields the key {min(taken)}, which is reserved; choose another key",
                    self._blanks.place(field),
                )
            return data

        return _part(make, varies=bool(blank_map.pairs))

    def _remove_keys(self) -> Callable[[str], tuple[str, ...]]:
        """packageContext.removeKeys and removeKeyExprs, without duplicates, sorted."""
        context = self._entry.template.package_context
        blanks = [
            self._blanks.blank(None, expression, f"packageContext.removeKeyExprs[{index}]")
            for index, expression in enumerate(context.remove_key_exprs)
        ]

        def make(key: str) -> tuple[str, ...]:
            return tuple(sorted({*context.remove_keys, *(blank.text(key) for blank in blanks)}))

        return _part(make, varies=bool(blanks))

    def _functions(
        self, section: str, functions: tuple[FunctionTemplate, ...]
    ) -> Callable[[str], tuple[Function, ...]]:
        """A section of the pipeline, its functions with their configuration."""
        blanks = [
            self._blanks.map(
                function.config_map,
                function.config_map_exprs,
                f"pipeline.{section}[{index}].configMapExprs",
            )
            for index, function in enumerate(functions)
        ]

        def make(key: str) -> tuple[Function, ...]:
            both = zip(functions, blanks, strict=True)
            return tuple(function_of(function, blank.filled(key)) for function, blank in both)

        return _part(make, varies=any(blank.pairs for blank in blanks))

    def _injectors(self) -> Callable[[str], tuple[Injector, ...]]:
        """The injectors, each with the name of the object that it chooses."""
        blanks = [
            (
                self._blanks.blank(
                    injector.name, injector.name_expr, f"injectors[{index}].nameExpr"
                ),
                injector.group,
                injector.version,
                injector.kind,
            )
            for index, injector in enumerate(self._entry.template.injectors)
        ]

        def make(key: str) -> tuple[Injector, ...]:
            return tuple([Injector(name.text(key), *kinds) for name, *kinds in blanks])

        return _part(make, varies=any(name.expression for name, *_ in blanks))


def _part(make: Callable[[str], _Part], *, varies: bool) -> Callable[[str], _Part]:
    """A part of variants; where no expression is asked for it, all of them share it."""
    if varies:
        return make
    same = cache(lambda: make(""))
    return lambda _: same()


class Assembly:
    """Makes a policy's variants of its targets, and of the answers to what its templates ask."""

    def __init__(self, policy: UpstreamPolicy, answers: Answers) -> None:
        self._policy = policy
        by_entry: dict[int, dict[str, Values]] = {}
        for (entry, expression), values in answers.items():
            by_entry.setdefault(entry, {})[expression] = values
        self._forms = [
            _Form(number, entry, by_entry.get(number, {}))
            for number, entry in enumerate(policy.spec.targets)
        ]

    def repository(self, target: Target) -> str | TargetFailure:
        """The name of a target's downstream repository, after the first round of answers."""
        try:
            return self._forms[target.entry].repository.text(target.key, target.repository)
        except NoVariant as failure:
            return failure.failure(self._policy.metadata.name, target.key)

    def variant(self, target: Target, repository: Repository) -> VariantSpec | TargetFailure:
        """What the policy makes for the target, after the second round of answers."""
        try:
            return self._variant(target, repository, self._forms[target.entry])
        except NoVariant as failure:
            return failure.failure(self._policy.metadata.name, target.key)

    def _variant(self, target: Target, repository: Repository, form: _Form) -> VariantSpec:
        meta, upstream = self._policy.metadata, self._policy.spec.upstream
        key = target.key
        offline, unclear = form.offline(key)
        package = form.package.text(key, target.package)
        return VariantSpec(
            name=variant_name(meta.namespace, meta.name, key, target.readable),
            namespace=meta.namespace,
            policy=meta.name,
            stage=form.stage.text(key),
            target=key,
            upstream_repository=upstream.repository,
            upstream_package=upstream.package,
            repository=repository.metadata.name,
            path=form.path(repository.spec.directory, package),
            context=form.context(key),
            remove_keys=form.remove_keys(key),
            mutators=form.mutators(key),
            validators=form.validators(key),
            injectors=form.injectors(key),
            labels=form.labels(key),
            annotations=form.annotations(key),
            priority=form.priority.number(key),
            offline=offline,
            unclear=unclear,
        )
