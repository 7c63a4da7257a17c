"""Inputs of the gate engine, built from observed variants, records and policies."""
