"""Output of commands: tables, objects, patches, explanations, and reports of passes."""
