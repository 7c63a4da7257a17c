"""Labels and annotations that fanout writes or reads; a closed list, sorted."""

from enum import StrEnum


class Label(StrEnum):
    """Keys of labels and annotations."""

    INSTALL = "fanout.dev/install"
    POLICY = "fanout.dev/policy"
    REPOSITORY = "fanout.dev/repository"
    STAGE = "fanout.dev/stage"
    CONFIG_INJECTION = "kpt.dev/config-injection"
    INJECTED_RESOURCE = "kpt.dev/injected-resource"
