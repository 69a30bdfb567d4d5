"""The arguments and results of a share partition: plain, frozen values."""
