"""Periodic tables and steps: both are stored as tables, whenever they are updated."""

from __future__ import annotations

from freshline.definitions.sections.steps import Step
from freshline.definitions.sections.tables import Table

StoredDefinition = Table | Step
