"""A broker for tests: a node of Kafka behind a socket (extra ``broker``)."""
