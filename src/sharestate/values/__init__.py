"""What goes into a share partition and what comes out of it: plain, frozen values."""
