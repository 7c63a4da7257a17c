"""One text for equal plain data: what digests and comparisons are made of."""

import json

# `default` never meets plain data; whatever else comes along differs from everything but itself.
canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, check_circular=False, default=repr
).encode
