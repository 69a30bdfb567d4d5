"""What share partitions cost: ``make bench`` prints it, and ``make growth`` writes it into docs/growth.md."""
