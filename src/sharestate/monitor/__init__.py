"""
Watching the share groups of a cluster: what its state topic, its logs and its settings say, as metrics.

Nothing is written to the cluster, and its share coordinators are not asked. ``following`` and ``readings`` are
sans-I/O; ``watch`` reads a cluster, ``checkpoint`` a file, and ``exposition`` answers Prometheus.
"""
