"""`python -m driftgate`."""

from driftgate.cli import main

main()
