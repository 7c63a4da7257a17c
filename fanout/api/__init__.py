"""Kinds of group fanout.dev: models, validation, schemas, and views for output."""
