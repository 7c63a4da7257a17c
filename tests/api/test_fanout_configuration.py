"""The hosts that a FanoutConfiguration may list, and which Repository is on which."""

import pytest
from pydantic import ValidationError

from fanout.api.fanout_configuration import ForgeHost
from fanout.api.validators.field_rules import check_rules

HOST = {"host": "git.example.com", "type": "gitea", "secretRef": {"name": "git-example-com"}}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"host": "git.example.com:3000"},
        {"host": "127.0.0.1:3000"},
        {"host": "[::1]:3000"},
        {"api": "http://127.0.0.1:3000/gitea/api/v1"},
        {"webhookSecretRef": {"name": "hooks"}, "certificateAuthority": "-----BEGIN"},
        {"callsPerMinute": 60, "creationsPerHour": 500},
    ],
)
def test_a_host(fields):
    host = ForgeHost.model_validate({**HOST, **fields})
    for name, value in {**HOST, **fields}.items():
        assert host.model_dump(mode="json", by_alias=True)[name] == value


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"host": "https://git.example.com"}, "host"),
        ({"host": "Git.example.com"}, "host"),
        ({"host": "git.example.com/org"}, "host"),
        ({"host": "user@git.example.com"}, "host"),
        ({"type": "none"}, "type"),
        ({"api": "https://user:secret@git.example.com/api/v1"}, "api"),
        ({"api": "https://git.example.com/api?token=x"}, "api"),
        ({"api": "http://169.254.169.254/api"}, "api"),
        ({"secretRef": None}, "secretRef"),
        ({"callsPerMinute": 0}, "callsPerMinute"),
        ({"creationsPerHour": True}, "creationsPerHour"),
        ({"certificateAuthority": ""}, "certificateAuthority"),
    ],
)
def test_a_host_that_is_refused(fields, place):
    with pytest.raises(ValidationError) as failure:
        ForgeHost.model_validate({**HOST, **fields})
    assert {error["loc"][0] for error in failure.value.errors()} == {place}


def test_a_host_is_listed_once():
    errors = list(
        check_rules("FanoutConfiguration", {"forges": [HOST, {**HOST, "type": "github"}]})
    )
    assert [error.path for error in errors] == [("forges", 1, "host")]
