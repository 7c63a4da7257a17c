"""Validation of declared objects that needs the sandbox: expressions, templates, selectors."""
