"""
An independent model of a share partition, record by record: it shares no code with what it judges.

`SharePartitionMachine` and `RecordOracle` judge by it: one dictionary entry for each offset, plain and slow, by the
rules alone. It begins in ``model``. See "By an independent model" in ``docs/testing.md``.
"""
