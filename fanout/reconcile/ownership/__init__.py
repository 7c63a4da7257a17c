"""Path ownership: which variant holds which path of which repository."""
