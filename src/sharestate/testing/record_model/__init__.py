"""An independent model of a share partition, record by record: it shares no code with what it judges."""
