"""Minimal hitting sets: searched for, with an allowance, and repaired."""
