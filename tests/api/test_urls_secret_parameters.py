"""Names of query parameters that carry a credential, and those that do not."""

import pytest

from fanout.api.field_errors import InvalidValue
from fanout.api.urls import (
    check_http_url,
    check_no_secret_parameter,
    check_url,
    is_secret_parameter,
)
from fanout.telemetry.redaction import Redactor

SECRET = [
    "token", "access_token", "accessToken", "accesstoken", "private_token", "PRIVATE-TOKEN",
    "job_token", "key", "api_key", "apikey", "api-key", "access_key", "sig", "signature",
    "X-Amz-Signature", "X-Amz-Security-Token", "X-Amz-Credential", "X-Goog-Signature",
    "client_secret", "password", "passwd", "auth", "%74oken", "jwt",
]  # fmt: skip
PLAIN = [
    "page",
    "sort_key",
    "keyword",
    "monkey",
    "author",
    "sigma",
    "state",
    "tokens_used",
    "q",
    "",
]


@pytest.mark.parametrize("name", SECRET)
def test_a_name_of_a_credential(name):
    assert is_secret_parameter(name)


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_of_something_else(name):
    assert not is_secret_parameter(name)


@pytest.mark.parametrize("name", SECRET)
@pytest.mark.parametrize("check", [check_url, check_http_url])
@pytest.mark.parametrize("before", ["?", "?a=1&", "?a=1;"])
def test_no_url_carries_one(name, check, before):
    with pytest.raises(InvalidValue) as caught:
        check(f"https://host.example.com/x{before}{name}=s3cr3t")
    assert "s3cr3t" not in f"{caught.value.problem} {caught.value.remedy}"


@pytest.mark.parametrize("name", SECRET)
@pytest.mark.parametrize("before", ["?", "?a=1&", "?a=1;"])
@pytest.mark.parametrize("value", ["s3cr3t", "s3;cr3t;", "s3=cr3t"])
def test_no_text_shows_one(name, before, value):
    text = f"GET https://host.example.com/x{before}{name}={value}&b=2 failed"
    shown = Redactor().redact_text(text)
    assert "s3" not in shown
    assert "cr3t" not in shown
    assert shown.endswith(" failed")


@pytest.mark.parametrize("name", PLAIN)
def test_other_parameters_stay(name):
    check_no_secret_parameter(f"https://host.example.com/x?{name}=1")
    text = f"GET /x?{name}=1"
    assert Redactor().redact_text(text) == text
