"""What a process leaves for the next one, and anybody may throw away."""
