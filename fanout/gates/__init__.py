"""Pure evaluation of stages, checks and decisions: what each variant may do now."""
