"""Natural language: the delegation's prose, as it was written. The baseline of every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphhandoff.compress.protocol import Delegation, Draft, Protocol


class NaturalLanguage(Protocol):
    """Send the prose."""

    id: ClassVar[str] = "natural_language"
    schema_aware: ClassVar[bool] = False
    trained: ClassVar[bool] = False

    def draft(self, delegations: Sequence[Delegation]) -> list[Draft]:
        """Return the prose of each delegation."""
        return [Draft(text=delegation.prose, route="natural_language") for delegation in delegations]
