"""Variables of the templates of pull requests."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fanout.api.durations import format_instant
from fanout.plan.pull_requests.markdown_text import format_block, format_code, format_sentence
from fanout.plan.pull_requests.request_text import RequestContent, build_body, build_title

TITLE_VARIABLES: Final = (
    "branch",
    "headBranch",
    "install",
    "namespace",
    "policy",
    "repository",
    "revision",
    "stage",
    "title",
    "variants",
)
TEXT_VARIABLES: Final = (
    *TITLE_VARIABLES,
    "changes",
    "checks",
    "conflicts",
    "holds",
    "text",
    "upstreams",
)


def build_title_variables(content: RequestContent) -> Mapping[str, Any]:
    """Return the variables of `titleTemplate`: plain, because the title is escaped as a whole."""
    return {**_common_variables(content, str), "title": build_title(content)}


def build_text_variables(content: RequestContent) -> Mapping[str, Any]:
    """Return the variables of `bodyTemplate`. Values are Markdown: inline code, and sentences."""
    return {
        **_common_variables(content, format_code),
        "title": format_code(build_title(content)),
        "text": build_body(content),
        "changes": [
            {
                "paths": list(map(format_code, change.paths)),
                "patch": format_block(change.lines, "diff"),
                "omitted": format_sentence(change.omitted),
            }
            for change in content.changes
        ],
        "checks": [
            {
                "name": format_code(check.result.name),
                "result": str(check.result.verdict),
                "sentence": format_sentence(check.result.message),
                "paths": list(map(format_code, check.paths)),
            }
            for check in content.checks
        ],
        "conflicts": [
            {
                "sentence": format_sentence(conflict.message),
                "decided": conflict.is_decided,
                "paths": list(map(format_code, conflict.paths)),
            }
            for conflict in content.conflicts
        ],
        "holds": [
            {
                "reason": format_code(item.hold.reason),
                "sentence": format_sentence(item.hold.message),
                "actor": format_sentence(item.hold.who),
                "until": format_code(format_instant(item.hold.until)) if item.hold.until else "",
                "paths": list(map(format_code, item.paths)),
            }
            for item in content.holds
        ],
        "upstreams": [
            {
                "repository": format_code(upstream.repository),
                "package": format_code(upstream.package),
                "revision": format_code(upstream.revision),
                "commit": format_code(upstream.commit),
            }
            for upstream in content.upstreams
        ],
    }


def _common_variables(content: RequestContent, escape: Callable[[str], str]) -> Mapping[str, Any]:
    namespace, _, policy = content.policy.partition("/")
    revisions = sorted({variant.revision for variant in content.variants if variant.revision})
    return {
        "branch": escape(content.branch),
        "headBranch": escape(content.head_branch),
        "install": escape(content.install),
        "namespace": escape(namespace),
        "policy": escape(policy),
        "repository": escape(content.repository),
        "revision": ", ".join(map(escape, revisions)),
        "stage": escape(content.stage),
        "variants": [
            {
                "name": escape(variant.name),
                "path": escape(variant.path),
                "target": escape(variant.target),
                "action": str(variant.verb),
                "oldRevision": escape(variant.old_revision),
                "revision": escape(variant.revision),
            }
            for variant in content.variants
        ],
    }
