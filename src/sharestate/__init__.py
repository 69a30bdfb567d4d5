"""A pure-Python model of what Kafka brokers do for share groups (KIP-932)."""
