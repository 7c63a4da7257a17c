"""The tests' GitHub: limits of calls, and answers that cost none."""

from datetime import timedelta
from typing import Any

import pytest
from github_site import START, Site


def test_a_304_is_free_and_the_tag_is_of_one_token(site: Site):
    status, headers, _ = site.try_call("GET", "/pulls")
    known = {"If-None-Match": headers["ETag"]}
    again, unchanged, body = site.try_call("GET", "/pulls", headers=known)
    assert (status, again, body) == (200, 304, None)
    assert unchanged["X-RateLimit-Used"] == headers["X-RateLimit-Used"]
    renewed = site.github.token(site.installation)
    assert site.try_call("GET", "/pulls", headers=known, token=renewed)[0] == 200
    site.open()
    assert site.try_call("GET", "/pulls", headers=known)[0] == 200


@pytest.mark.parametrize("status", [403, 429])
def test_the_primary_limit_ends_with_its_hour(site: Site, status: int):
    site.github.limits.status, site.github.limits.hourly["core"] = status, 2
    answers = [site.try_call("GET", "") for _ in range(3)]
    assert [it[0] for it in answers] == [200, 200, status]
    assert [it[1]["X-RateLimit-Remaining"] for it in answers] == ["1", "0", "0"]
    assert answers[2][1]["X-RateLimit-Reset"] == str(int((START + timedelta(hours=1)).timestamp()))
    assert "Retry-After" not in answers[2][1]
    overview = site.ask("GET", "//rate_limit")
    assert overview["resources"]["core"]["remaining"] == 0
    assert "rate" not in overview
    site.pass_time(hours=1)
    assert site.try_call("GET", "")[0] == 200


@pytest.mark.parametrize("retry_after", [60, None])
@pytest.mark.parametrize(
    ("limits", "wait"),
    [
        ({"content_a_minute": 2}, {"minutes": 1}),
        ({"content_an_hour": 2}, {"hours": 1}),
        ({"points_a_minute": {"core": 14}}, {"minutes": 1}),
    ],
)
def test_secondary_limits_are_told_with_and_without_retry_after(
    site: Site, limits: dict[str, Any], wait: dict[str, int], retry_after: int | None
):
    head = site.disk.object_id("draft")
    site.github.limits.retry_after = retry_after
    for name, value in limits.items():
        setattr(site.github.limits, name, value)
    path, body = f"/statuses/{head}", {"state": "pending"}
    answers = [site.try_call("POST", path, body) for _ in range(3)]
    assert [it[0] for it in answers] == [201, 201, 403]
    assert "secondary rate limit" in answers[2][2]["message"]
    assert answers[2][1].get("Retry-After") == (retry_after and str(retry_after))
    assert answers[2][1]["X-RateLimit-Remaining"] != "0"
    site.pass_time(**wait)
    assert site.try_call("POST", path, body)[0] == 201


def test_calls_at_once_have_a_limit(site: Site):
    limits = site.github.limits
    limits.concurrent = 1
    nested = []
    site.github.before = lambda call: (
        nested.append(site.try_call("GET", "/branches/main")) if call.endswith("/pulls") else None
    )
    assert site.try_call("GET", "/pulls")[0] == 200
    assert [it[0] for it in nested] == [403]
    assert limits.most_concurrent == 2


def test_installations_have_limits_of_their_own(site: Site):
    other = site.github.token(site.github.installation(site.app, "other"))
    used = [site.try_call("GET", "", token=it)[1]["X-RateLimit-Used"] for it in (site.token, other)]
    assert used == ["1", "1"]
