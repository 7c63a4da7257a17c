"""View of one merge conflict, as `fanout get conflicts` prints it."""

from typing import Annotated, Literal

from fanout.api.view_base import VariantReference, View, ViewModel
from fanout.values import Instant, doc


class ConflictViewSpec(VariantReference, kw_only=True):
    """The value that a ConflictView is about."""

    repository: Annotated[str, doc("Name of the downstream Repository object.")]
    path: Annotated[str, doc("Path of the package, relative to the root of the repository.")]
    key: Annotated[
        str,
        doc(
            "Key of the conflict, as `fanout resolve --take KEY=SIDE` takes it. The"
            " same field with the same three values has the same key in every revision."
        ),
    ]
    file: Annotated[str, doc("Path of the file, relative to the package.")] = ""
    object: Annotated[
        str,
        doc(
            "Kind and name of the object in the file; empty if the conflict is"
            " about the whole file."
        ),
    ] = ""
    field: Annotated[
        str,
        doc(
            "Path of the field in the object; empty if the conflict is about the"
            " whole object or file."
        ),
    ] = ""


class ConflictViewStatus(ViewModel, kw_only=True):
    """Observed state of a merge conflict. Values of a Secret are not shown."""

    place: Annotated[
        Literal["Draft", "Published"],
        doc(
            "Where the conflict is: `Draft` in an open draft, `Published` in the published package."
        ),
    ]
    revision: Annotated[str, doc("Name of the upstream revision that was merged.")]
    in_force: Annotated[
        Literal["Upstream", "Local", "Edited"],
        doc(
            "Side whose value the package has: `Upstream`, `Local`, or `Edited` for"
            " the value of a commit on the draft."
        ),
    ]
    decided: Annotated[
        bool,
        doc(
            "Whether the conflict is decided, by a person, by a commit on the draft"
            " or by `onConflict`."
        ),
    ]
    base: Annotated[
        str | None, doc("Value before either side changed it; null if not on record.")
    ] = None
    upstream: Annotated[
        str | None, doc("Value that upstream changed it to; null if not on record.")
    ] = None
    local: Annotated[str | None, doc("Value that it has downstream; null if not on record.")] = None
    since: Annotated[
        Instant | None, doc("Time of the draft's commit, or of the publication, in RFC 3339.")
    ] = None
    message: Annotated[str, doc("Summary of the conflict as one sentence.")]


class ConflictView(View, kw_only=True):
    """One merge conflict of a draft, or of what is published."""

    kind: Annotated[Literal["ConflictView"], doc("Kind of the object; always `ConflictView`.")] = (
        "ConflictView"
    )
    spec: Annotated[
        ConflictViewSpec, doc("Place of the conflict: policy, variant, package, file and field.")
    ]
    status: Annotated[ConflictViewStatus, doc("Observed state of the conflict, with its values.")]
