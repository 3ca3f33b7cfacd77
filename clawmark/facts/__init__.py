"""What may become a fact, and which of two statements wins. Pure rules; rows are `clawmark.store.facts`."""
