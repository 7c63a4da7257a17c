"""The alert rules and the dashboard that are shipped: they know the metrics, and work."""

import json
import re
import subprocess
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import pytest
import yaml
from fleet import POLICY, Fleet
from prometheus_server import prometheus, promtool
from run_process import PATIENCE, run_processes

from fanout.api.reasons import Reason
from fanout.serve.metric_table import METRICS, MetricType

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"
RULES = MONITORING / "alerts.yaml"
ALERTS = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [*QUERIES, *(it["expr"] for it in ALERTS)]
SUFFIXES = {
    MetricType.HISTOGRAM: ("_bucket", "_sum", "_count"),
    MetricType.SUMMARY: ("_sum", "_count"),
}
SERIES = {f"{it.name}{suffix}": it for it in METRICS for suffix in SUFFIXES.get(it.type, ("",))}
POLICY_LABELS = 'namespace="default",policy="monitoring"'
STAGE_LABELS = f'{POLICY_LABELS},stage="prod"'
STAGE = {"namespace": "default", "policy": "monitoring", "stage": "prod"}


def test_rules_and_dashboard_name_metrics_that_are_served():
    names = {
        name
        for it in EXPRESSIONS
        for name in re.findall(r"\b(?:fanout|workqueue|process)_\w+", re.sub(r'"[^"]*"', "", it))
    }
    assert len(names) >= 20
    assert names - SERIES.keys() == {"process_resident_memory_bytes"}


def test_every_metric_is_in_a_rule_or_on_the_dashboard_or_left_to_details():
    shown = {SERIES[name] for name in SERIES if any(name in it for it in EXPRESSIONS)}
    unshown = {it.name for it in METRICS if it not in shown}
    assert unshown == {
        "fanout_forge_call_duration_seconds",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_work_duration_seconds",
    }


def test_rules_and_dashboard_name_labels_that_the_metrics_have():
    for expression in EXPRESSIONS:
        for name, selectors in re.findall(r"(\w+)\{([^}]*)\}", expression):
            labels = re.findall(r'(\w+)(?:=~|!=|=)"', selectors)
            metric_labels = SERIES[name].labels if name in SERIES else ("job",)
            assert set(labels) <= set(metric_labels), expression


def test_rules_name_reasons_that_there_are():
    text = " ".join(it["expr"] for it in ALERTS)
    reasons = set(re.findall(r'reason="(\w+)"', text))
    assert reasons
    assert reasons <= {it.value for it in Reason}


def test_the_guide_lists_the_alerts():
    guide = (MONITORING.parent / "guides" / "monitoring.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(Fanout\w+)` \|", guide, flags=re.MULTILINE)
    assert listed == [it["alert"] for it in ALERTS]


def test_each_alert_says_what_to_do():
    for rule in ALERTS:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description"}
    names = [it["alert"] for it in ALERTS]
    assert len(names) == len(set(names))


# By alert: the series that fire it, one value a minute, and the labels that it then has.
FIRING = {
    "FanoutDown": ({}, {}),
    "FanoutPassesStopped": (
        {'workqueue_unfinished_work_seconds{name="fanout"}': "1801x2000"},
        {"name": "fanout"},
    ),
    "FanoutPassesFail": (
        {
            "fanout_sweep_last_success_timestamp_seconds": "0x2000",
            'fanout_reconcile_total{result="error"}': "0+1x2000",
        },
        {},
    ),
    "FanoutPolicyStopped": (
        {f'fanout_policies{{{POLICY_LABELS},state="Stopped"}}': "1x2000"},
        {"namespace": "default", "policy": "monitoring"},
    ),
    "FanoutStageHalted": ({f'fanout_stages{{{STAGE_LABELS},state="Halted"}}': "1x2000"}, STAGE),
    "FanoutVariantsFailed": (
        {f'fanout_variants{{{STAGE_LABELS},state="Failed"}}': "3x2000"},
        STAGE,
    ),
    "FanoutMergeConflicts": (
        {f'fanout_holds{{{STAGE_LABELS},reason="MergeConflict"}}': "1x2000"},
        STAGE,
    ),
    "FanoutPolicyStuck": (
        {f'fanout_holds{{{POLICY_LABELS},stage="",reason="Stuck"}}': "1x2000"},
        {"namespace": "default", "policy": "monitoring"},
    ),
    "FanoutApprovalsMissing": (
        {f'fanout_holds{{{STAGE_LABELS},reason="ApprovalMissing"}}': "1x2000"},
        STAGE,
    ),
    "FanoutActionsFail": (
        {'fanout_actions_total{kind="Publish",result="failed"}': "0+1x2000"},
        {"kind": "Publish"},
    ),
    "FanoutGitFails": (
        {
            'fanout_git_operations_total{operation="push",result="RemoteDenied"}': "0+1x2000",
            'fanout_git_operations_total{operation="push",result="success"}': "0+2x2000",
        },
        {"operation": "push"},
    ),
    "FanoutForgeLimitReached": (
        {'fanout_forge_rate_limit_remaining{host="git.example.com",limit="calls"}': "0x2000"},
        {"host": "git.example.com", "limit": "calls"},
    ),
    "FanoutNotificationsWait": (
        {'fanout_notifications_waiting{name="chat"}': "2x2000"},
        {"name": "chat"},
    ),
}
# A fleet in which nothing is wrong, although variants wait and some calls fail.
HEALTHY = {
    'fanout_build_info{version="0.1.0"}': "1x2000",
    'workqueue_unfinished_work_seconds{name="fanout"}': "20x2000",
    "fanout_sweep_last_success_timestamp_seconds": "0+60x2000",
    'fanout_reconcile_total{result="error"}': "0x2000",
    'fanout_reconcile_total{result="success"}': "0+1x2000",
    f'fanout_policies{{{POLICY_LABELS},state="Progressing"}}': "1x2000",
    f'fanout_stages{{{STAGE_LABELS},state="Pending"}}': "1x2000",
    f'fanout_variants{{{STAGE_LABELS},state="Ready"}}': "40x2000",
    f'fanout_holds{{{STAGE_LABELS},reason="SoakRunning"}}': "4x2000",
    'fanout_actions_total{kind="Publish",result="done"}': "0+1x2000",
    'fanout_git_operations_total{operation="push",result="RemoteMoved"}': "0+1x2000",
    'fanout_git_operations_total{operation="push",result="success"}': "0+20x2000",
    'fanout_forge_rate_limit_remaining{host="git.example.com",limit="calls"}': "40x2000",
    'fanout_notifications_waiting{name="chat"}': "0x2000",
}


def test_each_alert_fires_when_it_should_and_none_in_health(tmp_path):
    assert FIRING.keys() == {it["alert"] for it in ALERTS}
    (tmp_path / "alerts.yaml").write_text(RULES.read_text())
    tests = [play(HEALTHY, {it["alert"]: [] for it in ALERTS})]
    for rule in ALERTS:
        series, labels = FIRING[rule["alert"]]
        expected = {"exp_labels": {**labels, **rule["labels"]}}
        tests.append(play(series, {rule["alert"]: [expected]}))
    # The rules are those of the files whatever the interval, and a minute takes promtool 30 s.
    cases = {"rule_files": ["alerts.yaml"], "evaluation_interval": "5m", "tests": tests}
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(cases))
    done = subprocess.run(
        [promtool(), "test", "rules", "cases.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def play(series, alerts):
    """A case of promtool: series of a minute's steps, and the alerts that fire after 30 hours."""
    rules = {it["alert"]: it for it in ALERTS}
    expectations = [
        {
            "alertname": name,
            "eval_time": "1800m",
            "exp_alerts": [
                {**it, "exp_annotations": annotations(rules[name], it)} for it in active_alerts
            ],
        }
        for name, active_alerts in alerts.items()
    ]
    rows = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": rows, "alert_rule_test": expectations}


def annotations(rule, alerts):
    """The texts of an alert with its labels filled in."""
    values = {f"$labels.{label}": text for label, text in alerts["exp_labels"].items()}
    values["$value"] = "3"
    return {
        name: re.sub(r"\{\{ (\S+) \}\}", lambda match: values[match[1]], text)
        for name, text in rule["annotations"].items()
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Prometheus with the rules, which scrapes a real `fanout run`; its address."""
    root = tmp_path_factory.mktemp("monitoring")
    promtool()
    fleet = Fleet.build(root, {"ams": ("dev", "edge")})
    fleet.write("policy.yaml", POLICY)
    (root / "server").mkdir()
    with run_processes() as start:
        running = start(fleet, "--listen", "127.0.0.1:0")

        def served():
            return [it["address"] for it in running.log() if "Serving metrics" in it["event"]]

        running.until(served)
        with prometheus(root / "server", served()[0], "fanout_policies", RULES) as address:
            yield address


def ask(address, path, **parameters):
    opener = build_opener(ProxyHandler({}))
    with opener.open(f"{address}/api/v1/{path}?{urlencode(parameters)}", timeout=60) as answer:
        return json.loads(answer.read())["data"]


def test_prometheus_scrapes_the_metrics_and_evaluates_the_rules(server):
    deadline = monotonic() + PATIENCE
    while True:
        rules = [rule for group in ask(server, "rules")["groups"] for rule in group["rules"]]
        targets = {it["value"][1] for it in ask(server, "query", query="up")["result"]}
        if {it["health"] for it in rules} == {"ok"} and targets == {"1"}:
            break
        assert monotonic() < deadline, (rules, targets)
        sleep(0.1)
    assert {it["name"] for it in rules} == FIRING.keys()


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_of_the_dashboard_can_be_evaluated(server, query):
    variables = {"namespace": ".*", "policy": ".*", "job": ".*", "__rate_interval": "1m"}
    for name, value in variables.items():
        query = query.replace(f"${name}", value)
    assert "$" not in query
    assert ask(server, "query", query=query)["resultType"] == "vector"
