"""Messages of vendor commits: what is stated comes back, and what is odd is left out."""

from itertools import product

from fanout.plan.commit_statement import (
    PackageStatement,
    PublicationStatement,
    VendorMessage,
    format_vendor_message,
    parse_vendor_message,
)
from fanout.values import replace

SUBJECT = "Keep the pristine renderings\n"


def state(path: str, number: int = 1, **trailers: str) -> PublicationStatement:
    values = {
        "install": "default",
        "policy": "default/web",
        "variant": f"web-{number}",
        "stage": "dev",
        "revision": "v1",
        "commit": "c" * 40,
        "digest": "d" * 40,
        "onto": "none",
        "tree": "e" * 40,
        "rendered": "f" * 40,
    }
    trailers_of_draft = PackageStatement(**{**values, **trailers})
    return PublicationStatement(
        path=path, number=number, merge="a" * 40, trailers=trailers_of_draft
    )


def test_formatted_statements_are_parsed_back():
    statements = [
        replace(state(path, number, stage=stage, revision=revision), merge=merge * 40)
        for number, (path, stage, revision, merge) in enumerate(
            product(["a b/c", "x"], ["dev", "none"], ["v1", "v2"], "ab"), start=1
        )
    ]
    message = parse_vendor_message(
        format_vendor_message(SUBJECT, VendorMessage(tuple(statements), previous="9" * 40))
    )
    assert sorted(message.statements, key=lambda it: it.number) == statements
    assert message.previous == "9" * 40


def test_used_numbers_come_back_from_one_short_line_each():
    message = VendorMessage((state("a"),), {"a b/c": 12, "d/v3": 4}, "9" * 40)
    text = format_vendor_message(SUBJECT, message)
    assert parse_vendor_message(text) == message
    assert text.count("Fanout-Used: ") == 2
    for odd in ("Fanout-Used: d/v3/v0", "Fanout-Used: v4", f"Fanout-Used: d/v{'9' * 5000}"):
        parsed = parse_vendor_message(text.replace("Fanout-Used: d/v3/v4", odd))
        assert parsed.used_numbers == {"a b/c": 12}


def test_a_value_that_holds_for_all_is_written_once():
    message = format_vendor_message(SUBJECT, VendorMessage((state("a"), state("b", 2))))
    assert [message.count(f"Fanout-{key}: ") for key in ("Policy", "Merge", "Package")] == [1, 1, 2]


def test_without_publications_the_message_is_as_ever():
    assert format_vendor_message(SUBJECT, VendorMessage()) == SUBJECT
    assert parse_vendor_message(SUBJECT) == VendorMessage()


def test_malformed_statements_are_omitted():
    message = format_vendor_message(SUBJECT, VendorMessage((state("a"), state("b", 2))))
    for old, new in (
        ("Fanout-Tag: a/v1\n", "Fanout-Tag: other/v1\n"),
        ("Fanout-Tag: a/v1\n", "Fanout-Tag: a/vx\n"),
        ("Fanout-Tag: a/v1\n", f"Fanout-Tag: a/v{'9' * 5000}\n"),
        ("Fanout-Tag: a/v1\n", "Fanout-Tag: a/v٣\n"),
        ("Fanout-Tag: a/v1\n", "Fanout-New: 1\n"),
        ("Fanout-Package: web-1 ", "Fanout-Package: "),
    ):
        assert old in message
        parsed = parse_vendor_message(message.replace(old, new)).statements
        assert [it.path for it in parsed if it.path == "b"] == ["b"], new
    assert parse_vendor_message(message.replace("Fanout-Merge: ", "Fanout-M: ")).statements == ()
