"""Functions of the catalog that run in process."""
