"""What clawmark is to each host: its words, its glue, and the files it puts there."""
