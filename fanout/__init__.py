"""fanout: one upstream package of Kubernetes configuration, a variant for every target."""
