"""Import of Kargo objects: stages and gates are converted, steps are reported."""
