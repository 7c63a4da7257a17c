"""fanout: one upstream package of Kubernetes configuration, a variant for every target."""

__version__ = "0.1.0"
