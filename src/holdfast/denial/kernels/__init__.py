"""Rewriting, implication, support and violations of constraints."""
