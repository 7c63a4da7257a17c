"""Programs that are Python: what a package is after one of them."""

import yaml
from variants.running import kptfile, run

from fanout.reconcile.answers import Answering
from fanout.variants.model import Limits
from fanout.variants.questions import Broken, Program, Programs, Ran

PROGRAM = Program("fn", "/opt/fn", version="1")
LIMITS = Limits(programs=Programs({"fn": PROGRAM, "/opt/fn": PROGRAM}, {}))
NEW, OLD = "internal.config.kubernetes.io/", "config.kubernetes.io/"


class Shop:
    """Runs Python instead of programs: `work` changes the ResourceList in place."""

    def __init__(self, work):
        self.work = work
        self.seen = []

    def run(self, questions):
        return [self._run(question) for question in questions]

    def _run(self, question):
        whole = yaml.load(question.stdin, Loader=yaml.CSafeLoader)
        self.seen.append(yaml.load(question.stdin, Loader=yaml.CSafeLoader))
        answer = self.work(whole)
        if isinstance(answer, Ran | Broken):
            return answer
        return Ran(0, yaml.safe_dump(whole).encode(), "")


def after(files, work, *entries, policy=(), validators=()):
    """What differs from upstream once `fn` has done its work in the package's own pipeline."""
    shop = Shop(work)
    own = {"Kptfile": kptfile(*entries)} if entries else {}
    common = {"answering": Answering(shop), "limits": LIMITS}
    found = run({**own, **files}, *policy, validators=validators, **common)
    return found, shop.seen


def changed(files, work, entry="exec: fn"):
    return after(files, work, entry)[0]
