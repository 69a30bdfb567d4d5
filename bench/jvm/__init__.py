"""Kafka's own class and this library side by side: ``make bench-jvm`` measures both, and says what the goals are."""
