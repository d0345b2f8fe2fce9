"""``python -m kitlib``."""

from kitlib.cli import main

main()
