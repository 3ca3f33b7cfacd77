"""OpenClaw: a plugin in its gateway that asks the resident process, what its fields mean, its installation."""
