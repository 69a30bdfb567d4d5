"""The group's side of share groups, as brokers keep it: sans-I/O, like the leaders of share partitions."""
