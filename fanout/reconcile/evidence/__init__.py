"""Evidence for checks: commits named by people, and answers of machines."""
