"""The commands, by what they do to a workspace."""
