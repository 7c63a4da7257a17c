"""Asks HTTP services and Prometheus servers for checks; the one room, for now, with httpx2."""
