"""Campaigns that kill processes and damage files."""
