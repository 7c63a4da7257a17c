"""May it move on? One evaluator for all who ask."""
