"""The share-partition leader's state machine, sans-I/O: one file per concern, each named after what it holds."""
