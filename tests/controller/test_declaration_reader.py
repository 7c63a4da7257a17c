"""When the loop uses what is declared: once a change has settled, by a clock that is played."""

import pytest

from fanout.controller.declaration_reader import DeclarationReader, SettlingTime
from fanout.controller.log_throttling import LoopLog
from fanout.errors import Unavailable


class World:
    """Files of policies that may change, and a reader of them."""

    def __init__(self, files, settling):
        self.files, self.now = files.policy("a"), 100.0
        self.present = files.read()
        self.error = None
        self.reader = DeclarationReader(self, settling, LoopLog(), lambda: self.now)

    def read(self):
        if self.error is not None:
            raise self.error
        return self.present

    def change(self, name, *, is_noticed=False):
        self.present = self.files.policy(name).read()
        if is_noticed:
            self.reader.notice_change()

    def read_after(self, seconds):
        """Read later; return the policies in use, and the seconds until a change may settle."""
        self.now += seconds
        pause = self.reader.read()
        return "".join(it.metadata.name for it in self.reader.declared.policies), pause


@pytest.fixture
def watched(files):
    return World(files, SettlingTime(quiet=2, longest=5))


NEVER = float("inf")


def test_without_a_change_there_is_nothing_to_wait_for(watched):
    assert watched.read_after(1) == ("a", NEVER)


def test_a_change_that_only_reading_shows_is_used_when_a_later_reading_is_the_same(watched):
    watched.change("b")
    assert watched.read_after(1) == ("a", 2)
    assert watched.read_after(1) == ("a", 1)
    assert watched.read_after(1) == ("ab", NEVER)


def test_another_change_begins_the_wait_anew(watched):
    watched.change("b")
    assert watched.read_after(1) == ("a", 2)
    watched.change("c")
    assert watched.read_after(2) == ("a", 2)
    assert watched.read_after(2) == ("abc", NEVER)


def test_a_change_that_was_noticed_long_ago_has_settled(watched):
    watched.change("b", is_noticed=True)
    assert watched.read_after(2) == ("ab", NEVER)


def test_a_change_that_was_noticed_just_now_waits_for_what_is_left(watched):
    watched.change("b", is_noticed=True)
    assert watched.read_after(0.5) == ("a", 1.5)
    assert watched.read_after(1.5) == ("ab", NEVER)


def test_changes_without_end_are_used_after_a_while(watched):
    used = []
    for name in "bcdefg":
        watched.change(name, is_noticed=True)
        used.append(watched.read_after(1)[0])
    assert used == ["a"] * 4 + ["abcdef", "abcdef"]


def test_a_change_that_is_taken_back_is_none(watched):
    before = watched.present
    watched.change("b")
    assert watched.read_after(1) == ("a", 2)
    watched.present = before
    assert watched.read_after(2) == ("a", NEVER)


def test_an_adopted_declaration_is_no_change(watched):
    watched.change("b", is_noticed=True)
    watched.reader.adopt(watched.present)
    assert watched.read_after(0) == ("ab", NEVER)


def test_after_an_error_what_is_in_use_stays(watched):
    watched.error = Unavailable("the disk is away")
    assert watched.read_after(1) == ("a", NEVER)
