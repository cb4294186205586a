"""Routers: which delegations go as a graph and which as prose, decided from the task text alone.

The rule of a conservative router: natural language unless there is a reason for the graph.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

Choice = Literal["graph", "natural_language"]


class Router(Protocol):
    """Decides from what the customer asked for; must not see the plan, the prose or the benchmark's answers."""

    def choose(self, task_text: str) -> Choice:
        """Return the format for one task."""
        ...


class AlwaysGraph:
    """Send every graph: the upper end of the comparison, and the choice for graph-only pipelines."""

    def choose(self, task_text: str) -> Choice:
        """Return ``graph``."""
        return "graph"


class NaturalLanguageDefault:
    """Send prose, always: what a router does on any doubt, error or time-out."""

    def choose(self, task_text: str) -> Choice:
        """Return ``natural_language``."""
        return "natural_language"


# Words for acting on records, and for things whose wording is the deliverable. Neither list knows a benchmark.
_ACT = re.compile(
    r"\b(cancel|return|exchange|refund|change|modify|update|switch|swap|replace|upgrade|downgrade|undo|correct"
    r"|send back|ship|transfer|pay|split|remove|add|book|order|look up|check|find|track|confirm|get|know|tell|total"
    r"|how much|how many|which|status)(?:s|ed|d|ing|ging|ping|ling)?\b",
    re.IGNORECASE,
)
_WORDING = re.compile(
    r"\b(essay|poem|story|draft|rewrite|translate|summari[sz]e|brainstorm|opinion|tone of voice)\b",
    re.IGNORECASE,
)


class RuleRouter:
    """Needs no model: a graph when the task asks for actions or look-ups on records, prose on any doubt.

    Doubt is: no task text, nothing that reads like an action or a look-up, or a task whose result is wording.
    """

    def choose(self, task_text: str) -> Choice:
        """Return the format for one task."""
        if not task_text.strip() or _WORDING.search(task_text) or not _ACT.search(task_text):
            return "natural_language"
        return "graph"
