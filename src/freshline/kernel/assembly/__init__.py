"""Builds a kernel from a plan, and the same kernel again from a journal."""
