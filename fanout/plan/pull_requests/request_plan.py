"""Planning of pull requests: what each is to be, against what the forge shows."""

from fanout.plan.actions import ActionKind, RequestChange, RequestStatus
from fanout.plan.observation.observed_request import (
    GuardedMerge,
    RequestDraft,
    RequestEdit,
    RequestFacts,
    RequestState,
    StatusState,
)
from fanout.plan.pull_requests.markdown_text import format_code, format_sentence
from fanout.plan.pull_requests.request_group import RequestGroup
from fanout.plan.pull_requests.request_holds import RequestSettings, find_label_hold
from fanout.plan.pull_requests.request_text import (
    RequestText,
    build_request_text,
    needs_update,
    replace_own_text,
    replace_own_title,
)
from fanout.selection.ref_names import install_of
from fanout.values import replace

_MAX_DESCRIPTION = 140  # characters that all forges show of a status
DEFAULT_INSTALL = "default"


def wants_request(group: RequestGroup) -> bool:
    """Return whether the branch is to have an open pull request after the pass."""
    return (
        not group.is_removed
        and not group.is_taken
        and group.state.forge is not None
        and group.state.forge.failure is None
        and not group.is_declined
        # The forge may have merged what the branch is to have, and Git show it later.
        and not (
            group.facts is not None
            and group.facts.request.state is RequestState.MERGED
            and group.facts.request.head_commit == _head_commit(group)
            and not group.is_written
        )
    )


def plan_request(
    group: RequestGroup, text: RequestText | None, settings: RequestSettings
) -> RequestChange | None:
    """Plan the calls about one pull request; None if there are none.

    `text` is what fanout says in it; None where the branch is to have no request.
    """
    change = RequestChange(
        remote=group.state.remote,
        repository=group.state.identity,
        policy=f"{group.namespace}/{group.policy}",
        head_ref=group.ref,
        head_commit="" if group.is_written else _head_commit(group),
    )
    open_request = group.open_request
    if group.is_orphaned or group.is_taken:
        if open_request is not None:
            change = _plan_withdrawal(change, group, open_request, settings)
    elif text is not None and wants_request(group):
        change = _plan_open(change, group, text, settings)
    elif open_request is not None and group.is_removed and not group.is_declined:
        change = replace(change, request=open_request.request, closes=True)
    title, edit = text.title if text is not None else "", change.edit or RequestEdit()
    updates = [f"back to branch {edit.base_branch}"] if edit.base_branch is not None else []
    updates += ["its text"] if edit.text is not None else []
    if edit.is_draft is not None:
        updates.append("draft" if edit.is_draft else "ready for review")
    updates += [f"label {label}" for label in change.added_labels]
    details = {
        ActionKind.OPEN_REQUEST: title,
        ActionKind.UPDATE_REQUEST: ", ".join(updates),
        ActionKind.CLOSE_REQUEST: "nothing is left on its branch",
        ActionKind.SET_STATUS: format_status(change.status) if change.status is not None else "",
        ActionKind.MERGE_REQUEST: title,
    }
    actions = tuple(
        group.build_action(
            kind,
            repository=group.repository,
            ref=group.ref,
            expected=change.head_commit,
            digest=text.digest if text is not None else "",
            detail=details[kind],
            number=str(change.request.number) if change.request is not None else "",
        )
        for kind in change.kinds
    )
    return replace(change, actions=actions) if actions else None


def status_context(install: str) -> str:
    """Return the context of the status that fanout sets at the heads of its pull requests."""
    return "fanout" if install == DEFAULT_INSTALL else f"fanout/{install}"


def _plan_withdrawal(
    change: RequestChange, group: RequestGroup, facts: RequestFacts, settings: RequestSettings
) -> RequestChange:
    """Make an open request a draft again: its packages may be back soon.

    Its text stays, unless others took its branch: then the text says so.
    """
    request, edit = facts.request, RequestEdit()
    if settings.declared.draft and not request.is_draft:
        edit = RequestEdit(is_draft=True)
    if group.is_taken and group.hold is not None:
        text = build_request_text(
            install_of(group.ref),
            f"{group.namespace}/{group.policy or group.variant}",
            group.stage,
            request.title,
            f"{format_sentence(group.hold.message)} ({format_code(group.hold.reason)}).",
        )
        if needs_update(request.text, text):
            edit = replace(edit, text=replace_own_text(request.text, text))
    changed = edit if edit != RequestEdit() else None
    return replace(change, request=request, edit=changed, status=_plan_status(group, facts))


def _plan_open(
    change: RequestChange, group: RequestGroup, text: RequestText, settings: RequestSettings
) -> RequestChange:
    open_request = group.open_request
    is_draft = settings.declared.draft and group.hold is not None
    status = _plan_status(group, open_request)
    branch = group.state.branch.removeprefix("refs/heads/")
    if open_request is None:
        return replace(
            change,
            opening=RequestDraft(
                head_branch=group.ref.removeprefix("refs/heads/"),
                base_branch=branch,
                title=text.title,
                text=text.text,
                is_draft=is_draft,
            ),
            added_labels=tuple(settings.declared.labels),
            reviewers=tuple(settings.declared.reviewers),
            status=status,
        )
    request = open_request.request
    edit = RequestEdit(base_branch=branch if request.base_branch != branch else None)
    if needs_update(request.text, text):
        title = replace_own_title(request.title, request.text, text)
        edit = replace(edit, title=title, text=replace_own_text(request.text, text))
    if request.is_draft != is_draft:
        edit = replace(edit, is_draft=is_draft)
    if group.is_merged and edit.is_draft is None and group.refusal is None:
        edit = RequestEdit()  # nobody waits for the text of what is merged now: a call less
    # Guarded by the observed head; its message is filled in later.
    style = settings.choose_style(group.state, group.ref)
    branch = group.ref.removeprefix("refs/heads/")
    merge = GuardedMerge(request.number, _head_commit(group), branch, style)
    return replace(
        change,
        request=request,
        edit=edit if edit != RequestEdit() else None,
        added_labels=tuple(it for it in settings.declared.labels if it not in request.labels),
        status=status,
        merge=merge if group.is_merged else None,
    )


def _plan_status(group: RequestGroup, open_request: RequestFacts | None) -> RequestStatus | None:
    """Return the status to set at the head of the branch; None if it is there already."""
    context, line = status_context(install_of(group.ref)), group.line
    hold = (find_label_hold(open_request) if open_request is not None else None) or group.hold
    refusal = f"; {group.refusal.message}" if group.refusal is not None else ""
    message = hold.message if hold is not None else f"the gates are open{refusal}"
    state = StatusState.PENDING if hold is not None else StatusState.SUCCESS
    status = RequestStatus(context, state, shorten_description(message))
    is_same = (
        line is not None
        and not group.is_written
        and (line.head, line.status) == (_head_commit(group), format_status(status))
    )
    return None if is_same else status


def format_status(status: RequestStatus) -> str:
    """Return state and description of a status as they are recorded."""
    return f"{status.state}: {status.description}"


def shorten_description(text: str) -> str:
    """Return the text, cut to what all forges show of a status."""
    return text if len(text) <= _MAX_DESCRIPTION else f"{text[: _MAX_DESCRIPTION - 3]}..."


def _head_commit(group: RequestGroup) -> str:
    """Return the head of the branch before the pass."""
    return group.state.refs.get(group.ref, "")
