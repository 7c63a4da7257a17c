"""Canonical JSON: one text for equal plain data, for digests and comparisons."""

import json

# Plain data never reaches `default`; any other value gets a text of its own.
canonical_text = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, check_circular=False, default=repr
).encode
