"""Codes, masks of columns, hashes and order indexes."""
