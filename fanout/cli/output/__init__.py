"""Output of commands: tables, objects, patches, JUnit XML, and reports of passes."""
