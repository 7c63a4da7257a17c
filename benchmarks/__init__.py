"""What fanout costs, held against git itself and against the naive way."""
