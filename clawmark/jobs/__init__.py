"""Background work that resumes from what is committed: index, vectors, prune, and the pass that runs them."""
