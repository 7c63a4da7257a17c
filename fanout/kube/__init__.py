"""Kubernetes mode: objects of an API server, read over the transport of the official client."""
