"""What holds in your data, kept true while the data changes."""
