"""Freshline: a real-time stream warehouse whose freshness targets are proven before they are run."""

__version__ = "0.1.0"
