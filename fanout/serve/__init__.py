"""Server of `fanout run`: webhooks, health and metrics over HTTP."""
