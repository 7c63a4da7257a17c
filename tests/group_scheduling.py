"""Distribution of groups of tests among the processes of a run, as `--dist loadgroup` does it.

pytest-xdist goes through all that a process has done at each event, and through all tests for the
place of the next one. With fourteen thousand tests that is half of what the first process does.
"""

from functools import cached_property

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class GroupScheduling(LoadGroupScheduling):
    """Scheduler of `--dist loadgroup` that forgets what is done and knows where each test is."""

    @cached_property
    def _places(self) -> dict[str, int]:
        """The place of each test in the collection, which is the same in all processes."""
        collection = next(iter(self.registered_collections.values()))
        return {test: place for place, test in enumerate(collection)}

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        test = self.registered_collections[node][item_index]
        group = self._split_scope(test)
        tests = self.assigned_work[node][group]
        tests[test] = True
        if all(tests.values()):
            del self.assigned_work[node][group]
        self._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        group, tests = self.workqueue.popitem(last=False)
        self.assigned_work.setdefault(node, {})[group] = tests
        node.send_runtest_some([self._places[test] for test, done in tests.items() if not done])
