"""Settings for all tests."""

from hypothesis import settings

# The machine may be busy: how long an example takes says nothing about it.
settings.register_profile("freshline", deadline=None)
settings.load_profile("freshline")
