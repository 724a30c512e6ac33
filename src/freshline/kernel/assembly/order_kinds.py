"""From a policy's name to the kind of its orders."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from freshline.definitions.language.policies import POLICIES, PolicyName
from freshline.kernel.core.order import Order


def order_kind(policy: PolicyName) -> type[Order[Any]]:
    """The class of its orders. Definitions only name it, for they import nothing below them."""
    module, _, name = POLICIES[policy].order.partition(":")
    kind: type[Order[Any]] = getattr(import_module(module), name)
    return kind
