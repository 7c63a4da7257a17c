"""What of an object made of Kargo's goes as a whole, when a part of it cannot stay.

A stage without one of its checks, or without its soak, would let through what it was to hold.
"""

from fanout.api.foreign.assembly import Units

_META: Units = {"metadata.labels.*": "the label", "metadata.annotations.*": "the annotation"}
POLICY: Units = {**_META, "spec.stages.*": "the stage", "spec.targets.*": "the target"}
PROMOTION: Units = {**_META, "spec.autoPromotion.stages.*": "the name"}
