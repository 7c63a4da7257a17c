"""Rendering of variants: clone, context, injection, functions, digest."""
