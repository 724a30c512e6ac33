"""Finds the order class of a policy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from freshline.definitions.language.policies import POLICIES, PolicyName
from freshline.kernel.core.order import Order


def order_kind(policy: PolicyName) -> type[Order[Any]]:
    """The order class of a policy. Definitions only name it, for they do not import the kernel."""
    module, _, name = POLICIES[policy].order.partition(":")
    kind: type[Order[Any]] = getattr(import_module(module), name)
    return kind
