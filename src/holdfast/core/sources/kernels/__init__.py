"""Where the records of delimited text end."""
