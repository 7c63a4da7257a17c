"""What users write: the kinds, their validation, their schemas."""
