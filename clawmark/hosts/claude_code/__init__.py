"""Claude Code: what its hooks get, whose memory a folder belongs to, and the plugin that is put beside its skills."""
