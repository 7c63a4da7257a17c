"""Costs of fanout, compared with git itself and with a naive implementation."""
