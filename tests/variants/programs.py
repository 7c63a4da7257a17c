"""Programs that are Python: what a package is after one of them."""

import yaml
from variants.running import kptfile, run

from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.variants.function_requests import (
    AllowedPrograms,
    KrmProgram,
    ProgramOutput,
    ResponseError,
)
from fanout.variants.render_model import RenderLimits

PROGRAM = KrmProgram("fn", "/opt/fn", version="1")
LIMITS = RenderLimits(programs=AllowedPrograms({"fn": PROGRAM, "/opt/fn": PROGRAM}, {}))
NEW, OLD = "internal.config.kubernetes.io/", "config.kubernetes.io/"


class Shop:
    """Runs Python instead of programs: `work` changes the ResourceList in place."""

    def __init__(self, work):
        self.work = work
        self.seen = []

    def run(self, questions, budget=None):
        return [self._run(question) for question in questions]

    def _run(self, question):
        whole = yaml.load(question.stdin, Loader=yaml.CSafeLoader)
        self.seen.append(yaml.load(question.stdin, Loader=yaml.CSafeLoader))
        answer = self.work(whole)
        if isinstance(answer, ProgramOutput | ResponseError):
            return answer
        return ProgramOutput(0, yaml.safe_dump(whole).encode(), "")


def after(files, work, *entries, policy=(), validators=()):
    """Return the differences from upstream after `fn` ran in the package's own pipeline."""
    shop = Shop(work)
    own = {"Kptfile": kptfile(*entries)} if entries else {}
    common = {"answering": FunctionResultCache(shop), "limits": LIMITS}
    changed_files = run({**own, **files}, *policy, validators=validators, **common)
    return changed_files, shop.seen


def changed(files, work, entry="exec: fn"):
    return after(files, work, entry)[0]
