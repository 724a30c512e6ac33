"""Test doubles and generators for tests of warehouses."""
