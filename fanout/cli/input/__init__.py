"""Input of commands: options, settings, files, names and their completion."""
