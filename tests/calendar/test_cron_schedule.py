"""Cron lines that are taken, and those that are refused with the spelling that would be right."""

from datetime import UTC, datetime

import pytest

from fanout.calendar.cron_schedule import list_fires, parse_schedule
from fanout.calendar.time_zone import parse_zone
from fanout.errors import InvalidInput


def sentences(table):
    return [row[0] for row in table]


TAKEN = [
    # sentence, schedule, first three fires after Thursday 2026-01-01 00:00 UTC
    ("every 15 minutes", "*/15 * * * *", "01-01T00:15 01-01T00:30 01-01T00:45"),
    ("working days at nine", "0 9 * * 1-5", "01-01T09:00 01-02T09:00 01-05T09:00"),
    ("names, in any case, mean days", "0 9 * * Sat,SUN", "01-03T09:00 01-04T09:00 01-10T09:00"),
    ("names make ranges", "0 9 * * mon-tue", "01-05T09:00 01-06T09:00 01-12T09:00"),
    ("names mean months", "0 0 1 feb,apr *", "02-01T00:00 04-01T00:00 2027-02-01T00:00"),
    ("Sunday is 0", "0 0 * * 0", "01-04T00:00 01-11T00:00 01-18T00:00"),
    ("Sunday is 7", "0 0 * * 7", "01-04T00:00 01-11T00:00 01-18T00:00"),
    ("a range may end on Sunday as 7", "0 0 * * 6-7", "01-03T00:00 01-04T00:00 01-10T00:00"),
    ("a range with a step", "10-30/10 4 * * *", "01-01T04:10 01-01T04:20 01-01T04:30"),
    ("a range of one number with a step", "7-7/5 4 * * *", "01-01T04:07 01-02T04:07 01-03T04:07"),
    ("a list of ranges", "0 1-2,22 * * *", "01-01T01:00 01-01T02:00 01-01T22:00"),
    ("day of month or day of week", "0 0 13 * 5", "01-02T00:00 01-09T00:00 01-13T00:00"),
    ("a star asks for both fields", "0 0 */2 * 1", "01-05T00:00 01-19T00:00 02-09T00:00"),
    (
        "the first Monday, as cron says it",
        "0 0 */100,1-7 * 1",
        "01-05T00:00 02-02T00:00 03-02T00:00",
    ),
    ("the leap day", "0 0 29 2 *", "2028-02-29T00:00 2032-02-29T00:00 2036-02-29T00:00"),
    ("@yearly", "@yearly", "2027-01-01T00:00 2028-01-01T00:00 2029-01-01T00:00"),
    ("@annually", "@annually", "2027-01-01T00:00 2028-01-01T00:00 2029-01-01T00:00"),
    ("@monthly", "@monthly", "02-01T00:00 03-01T00:00 04-01T00:00"),
    ("@weekly", "@weekly", "01-04T00:00 01-11T00:00 01-18T00:00"),
    ("@daily", "@daily", "01-02T00:00 01-03T00:00 01-04T00:00"),
    ("@midnight", "@midnight", "01-02T00:00 01-03T00:00 01-04T00:00"),
    ("@hourly", "@hourly", "01-01T01:00 01-01T02:00 01-01T03:00"),
    ("blanks and zeros do not matter", "  05\t 0 * *  * ", "01-01T00:05 01-02T00:05 01-03T00:05"),
]


@pytest.mark.parametrize(("sentence", "line", "expected"), TAKEN, ids=sentences(TAKEN))
def test_taken(sentence, line, expected):
    instants = [
        datetime.fromisoformat(part if part.startswith("20") else f"2026-{part}").replace(
            tzinfo=UTC
        )
        for part in expected.split()
    ]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert list_fires(parse_schedule(line), parse_zone("UTC"), start, 3) == instants


REFUSED = [
    ("a single number with a step", "5/15 * * * *", "'5-59/15'"),
    ("a weekday with a step", "0 0 * * mon/2", "'1-6/2'"),
    ("six fields", "0 0 9 * * 1", "'0 9 * * 1'"),
    ("seven fields", "0 0 9 * * 1 2030", "write minute, hour"),
    ("four fields", "0 9 * *", "it has 4 fields"),
    ("nothing", "", "it has 0 fields"),
    ("a last day", "0 0 L * *", "write '1'"),
    ("a last Friday", "0 0 * * 5L", "write '5'"),
    ("a last Friday by name", "0 0 * * friL", "write 'fri'"),
    ("a bare L as weekday", "0 0 * * L", "write '6'"),
    ("a nearest workday", "0 0 15W * *", "write '15'"),
    ("a first Monday", "0 0 * * MON#1", "write '*/100,1-7' as day-of-month and 'mon'"),
    ("a second Monday", "0 0 * * 1#2", "'8-14' as day-of-month"),
    ("a question mark", "0 0 ? * 1", "write '*'"),
    ("@reboot", "@reboot", "@hourly"),
    ("a zone in the line", "TZ=Europe/Oslo 0 9 * * *", "timeZone"),
    ("a step of nothing", "*/0 * * * *", "from 1 upward"),
    ("a step that is a word", "*/x * * * *", "from 1 upward"),
    ("a number out of range", "60 * * * *", "from 0 to 59"),
    ("day zero", "0 0 0 * *", "from 1 to 31"),
    ("weekday eight", "0 0 * * 8", "from 0 to 7"),
    ("a weekday's name as month", "0 0 * mon *", "jan, feb"),
    ("an unknown name", "0 0 * * caturday", "sun, mon"),
    ("an hour range over midnight", "0 22-2 * * *", "'22-23,0-2'"),
    ("a weekday range over Sunday", "0 0 * * fri-sun", "'5-7'"),
    ("a weekday range into the next week", "0 0 * * sat-mon", "'6,0-1'"),
    ("an empty list item", "1,,2 * * * *", "cannot read ''"),
    ("a sign", "-1 * * * *", "cannot read '-1'"),
    ("digits of another script", "٣ * * * *", "cannot read"),
    ("a two-fold step", "*/2/3 * * * *", "cannot read"),
    ("a 30th of February", "0 0 30 2 *", "never fires"),
    ("a 31st of short months", "0 0 31 4,6,9,11 *", "never fires"),
    ("a 30th of February on any weekday", "0 0 30 2 */1", "never fires"),
]


@pytest.mark.parametrize(("sentence", "line", "expected"), REFUSED, ids=sentences(REFUSED))
def test_refused(sentence, line, expected):
    with pytest.raises(InvalidInput) as caught:
        parse_schedule(line)
    assert expected in str(caught.value)
    assert caught.value.remedy
    assert caught.value.reason == "InvalidSchedule"


ZONES = [
    ("a wrong case", "europe/oslo", "'Europe/Oslo'"),
    ("a typing error", "America/New_Yrok", "'America/New_York'"),
    ("a city alone", "Oslo", "'Europe/Oslo'"),
    ("an abbreviation of summer time", "CEST", "write one like"),
    ("nothing", "", "write one like"),
    ("an area", "Europe", "write one like"),
    ("a path", "../../etc/passwd", "write one like"),
    ("a null byte", "\0", "write one like"),
    ("whatever this machine is set to", "localtime", "write one like"),
    ("leap-second zones", "right/Europe/Oslo", "'Europe/Oslo'"),
]


@pytest.mark.parametrize(("sentence", "name", "expected"), ZONES, ids=sentences(ZONES))
def test_zone_refused(sentence, name, expected):
    with pytest.raises(InvalidInput) as caught:
        parse_zone(name)
    assert expected in str(caught.value)


def test_zone_taken():
    assert parse_zone("Europe/Oslo").key == "Europe/Oslo"
    assert parse_zone("UTC").key == "UTC"
