"""Results of a pass as people and programs see them: conditions, statuses, views, explanations."""
