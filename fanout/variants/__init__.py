"""What a target gets: clone, context, injection, functions, digest."""
