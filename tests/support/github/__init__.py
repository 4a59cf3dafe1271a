"""A GitHub on the loopback interface: state, faults, clock, and the order in which runs get their turn."""
