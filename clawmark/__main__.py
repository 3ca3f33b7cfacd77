"""`python -m clawmark` is the command `clawmark`."""

from clawmark.cli import main

main()
