"""Requests of service classes, answered by their deadline (paper 003)."""
