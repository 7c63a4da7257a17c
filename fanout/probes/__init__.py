"""Probes of HTTP services and Prometheus servers for checks; only here is httpx2 used."""
