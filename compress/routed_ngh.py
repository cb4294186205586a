"""Routed Graph Handoff (arXiv 2608.25277): the delegation's graph where the router says so, its prose elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from graphhandoff.compress.contract import ContractError, check_graph, signatures_of
from graphhandoff.compress.protocol import Delegation, Draft, Protocol, ToolSpec
from graphhandoff.compress.router import AlwaysGraph, NaturalLanguageDefault, Router, RuleRouter
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER
from graphhandoff.compress.wire import Wire, write

RouterName = Literal["rules", "always_graph", "natural_language"]


def build_router(name: RouterName) -> Router:
    """Build a router that needs no model, by its name in the configuration."""
    routers: dict[RouterName, type[RuleRouter] | type[AlwaysGraph] | type[NaturalLanguageDefault]] = {
        "rules": RuleRouter,
        "always_graph": AlwaysGraph,
        "natural_language": NaturalLanguageDefault,
    }
    return routers[name]()


class RoutedNGH(Protocol):
    """Send the graph on a wire, or the prose.

    Args:
        tools: the executor's tools; the graph is checked against them before it is sent.
        router: decides from the task text alone; ``None`` is the conservative default, natural language.
        wire: ``compact`` or ``json`` (the paper's).
        tokenizer: for counting.
    """

    id: ClassVar[str] = "routed_ngh"
    schema_aware: ClassVar[bool] = True
    trained: ClassVar[bool] = False

    def __init__(
        self,
        tools: Sequence[ToolSpec] = (),
        router: Router | None = None,
        wire: Wire = "compact",
        tokenizer: str = DEFAULT_TOKENIZER,
    ) -> None:
        super().__init__(tokenizer)
        self.tools = tuple(tools)
        self.router = router or NaturalLanguageDefault()
        self.wire: Wire = wire

    def draft(self, delegations: Sequence[Delegation]) -> list[Draft]:
        """Route each delegation; a graph that is missing or breaks the contract is replaced by the prose, recorded."""
        return [self._draft_one(delegation) for delegation in delegations]

    def _draft_one(self, delegation: Delegation) -> Draft:
        choice = self.router.choose(delegation.task_text)
        if choice == "natural_language":
            return Draft(text=delegation.prose, route="natural_language")
        if delegation.graph is None:
            return Draft(text=delegation.prose, route="natural_language", fallback="the delegation has no graph")
        try:
            check_graph(delegation.graph, self.tools)
        except ContractError as error:
            reason = f"invalid message: {type(error).__name__}: {error}"
            return Draft(text=delegation.prose, route="natural_language", fallback=reason)
        text = write(delegation.graph, self.wire, signatures_of(self.tools))
        return Draft(text=text, route="graph", details={"wire": self.wire})
