"""Drawings of the stages of a policy: text, Mermaid, Graphviz and SVG."""
