"""
What a broker does for share groups besides leading share partitions, sans-I/O: share sessions.

Import from the packages below, such as ``sharestate.broker.sessions``.
"""
