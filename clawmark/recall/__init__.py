"""Recall: the few past utterances that bear on a prompt."""
