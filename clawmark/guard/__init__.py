"""What stands between remembered text and the agent that reads it: markers, and secrets. Pure text to text."""
