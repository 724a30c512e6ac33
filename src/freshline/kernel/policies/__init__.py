"""Policies: which ready job a free track runs first."""
