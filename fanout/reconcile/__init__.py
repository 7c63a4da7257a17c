"""The pass: observe, decide, plan, execute, in a fixed order."""
