"""Synthetic retail problems, sampled from the real shop and kept only if their plan works on the real tools.

Problem *i* of a seed depends on the seed, the weights and *i* alone, so a stream can be cut anywhere and worked on by
any number of processes with the same result. Customers named in a pinned task never occur.

The weights were read off the 64 tasks that are not pinned; how near the outcome is to them and to all 114 is what
``graphhandoff data stats`` prints.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphhandoff.data.catalogue import Account, Catalogue, Order, load_catalogue
from graphhandoff.data.environment import load_environment
from graphhandoff.data.intent import find_state_fault, meant_changes
from graphhandoff.data.plans import finish_plan
from graphhandoff.data.problems import KINDS, Kind, Problem, Step
from graphhandoff.data.steps import StepMaker

MAX_ATTEMPTS = 200
_PENDING_KINDS = frozenset({"cancel", "modify_items", "modify_address", "modify_payment"})
_DELIVERED_KINDS = frozenset({"return", "exchange"})
_LATE: Mapping[Kind, int] = {"modify_items": 1, "transfer": 2}


class SynthesisError(RuntimeError):
    """No problem could be made in a bounded number of attempts; the weights ask for what the shop does not have."""


class SynthesisConfig(BaseModel):
    """What synthetic problems look like.

    Args:
        seed: of the whole stream.
        split: the pinned split, whose customers are left out.
        n_steps: relative weights of 0, 1, 2, … 8 things to do.
        kinds: relative weights of the kinds of things to do.
        writes_only: share of plans that list no look-up, of plans that do one thing and of those that do more.
        shared_order: share of address changes made on an order whose items are modified afterwards.
        sold_out, one_item_only, refund_elsewhere, card_too_small: how often, where it can happen, the customer's
            first wish cannot be met and what is done is the second.
        n_facts: relative weights of 0, 1, … facts that the customer must be told.
        decoys: mean number of identifiers named as a warning.
        misnamed: share of problems in which the customer gave another order id first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    seed: int
    split: str = "retail_pinned_50"
    n_steps: tuple[float, ...] = Field(
        default=(0.05, 0.55, 0.25, 0.075, 0.035, 0.02, 0.01, 0.005, 0.005), strict=False, min_length=2, max_length=9
    )
    kinds: dict[Kind, float] = Field(
        default_factory=lambda: dict(zip(KINDS, (0.14, 0.28, 0.2, 0.19, 0.13, 0.015, 0.06, 0.025), strict=True))
    )
    writes_only: tuple[float, float] = Field(default=(0.36, 0.58), strict=False)
    shared_order: float = Field(default=0.6, ge=0, le=1)
    sold_out: float = Field(default=0.35, ge=0, le=1)
    one_item_only: float = Field(default=0.3, ge=0, le=1)
    refund_elsewhere: float = Field(default=0.2, ge=0, le=1)
    card_too_small: float = Field(default=0.5, ge=0, le=1)
    n_facts: tuple[float, ...] = Field(default=(0.69, 0.18, 0.08, 0.03, 0.02), strict=False, min_length=1)
    decoys: float = Field(default=1.0, ge=0, le=4)
    misnamed: float = Field(default=0.12, ge=0, le=1)

    @model_validator(mode="after")
    def _check_weights(self) -> SynthesisConfig:
        for name in ("n_steps", "n_facts"):
            weights: tuple[float, ...] = getattr(self, name)
            if min(weights) < 0 or sum(weights) <= 0:
                raise ValueError(f"{name} {list(weights)} must be weights of 0 or more, not all 0")
        if min(self.kinds.values(), default=0) < 0 or sum(self.kinds.values()) <= 0:
            raise ValueError(f"kinds {self.kinds} must be weights of 0 or more, not all 0; allowed: {', '.join(KINDS)}")
        return self


def synthesize(config: SynthesisConfig, index: int) -> Problem:
    """Make problem ``index`` of the stream; equal arguments give the equal problem, in any process.

    Raises:
        SynthesisError: nothing that works was found in 200 attempts.
    """
    catalogue = load_catalogue(config.split)
    fault = "none"
    for attempt in range(MAX_ATTEMPTS):
        rng = random.Random(f"graphhandoff:{config.seed}:{index}:{attempt}")
        problem = _Sampler(config, catalogue, rng).sample(f"synthetic-{config.seed}-{index}")
        if problem is None:
            continue
        found = find_fault(problem, catalogue)
        if found is None:
            return problem
        fault = found
    raise SynthesisError(
        f"no problem {index} in {MAX_ATTEMPTS} attempts (last fault: {fault}); give the kinds that need rare orders "
        "less weight, or n_steps a smaller one"
    )


def iter_problems(config: SynthesisConfig, start: int, stop: int) -> Iterator[Problem]:
    """Yield problems ``start`` to ``stop`` - 1 of the stream."""
    return (synthesize(config, index) for index in range(start, stop))


def find_fault(problem: Problem, catalogue: Catalogue) -> str | None:
    """Execute a plan on the real tools and say what is wrong with it.

    Returns:
        ``None`` if every call succeeds and the database is as meant, else what is not.
    """
    episode = load_environment().run(problem.calls)
    for outcome in episode.outcomes:
        if not outcome.ok:
            return f"{outcome.call.name} was refused: {outcome.text}"
    return find_state_fault(catalogue, meant_changes(problem.steps, catalogue), episode.changes)


class _Sampler:
    """Samples one problem: how much is to be done, what, for whom, and with which words around it."""

    def __init__(self, config: SynthesisConfig, catalogue: Catalogue, rng: random.Random) -> None:
        self.config = config
        self.catalogue = catalogue
        self.rng = rng

    def sample(self, problem_id: str) -> Problem | None:
        """Return a problem that has not been tried yet, or ``None`` if what was drawn does not fit together."""
        n_steps = self.rng.choices(range(len(self.config.n_steps)), self.config.n_steps)[0]
        kinds = self.rng.choices(list(self.config.kinds), list(self.config.kinds.values()), k=n_steps)
        account = self._choose_account(kinds)
        if account is None:
            return None
        steps = self._make_steps(account, kinds)
        if steps is None:
            return None
        return finish_plan(
            problem_id,
            account,
            steps,
            self.catalogue,
            self.rng,
            writes_only=bool(steps) and self.rng.random() < self.config.writes_only[len(steps) > 1],
            n_facts=self._n_facts(bool(steps)),
            mean_decoys=self.config.decoys,
            misnamed=self.rng.random() < self.config.misnamed,
        )

    def _n_facts(self, does_something: bool) -> int:
        drawn: int = self.rng.choices(range(len(self.config.n_facts)), self.config.n_facts)[0]
        return drawn if does_something else max(1, drawn)

    def _choose_account(self, kinds: Sequence[Kind]) -> Account | None:
        n_pending = sum(kind in _PENDING_KINDS for kind in kinds)
        n_delivered = sum(kind in _DELIVERED_KINDS for kind in kinds)
        # An order can hold an address change and a modification; whether it does is drawn later.
        n_pending -= min(kinds.count("modify_address"), kinds.count("modify_items"))
        fitting = self.catalogue.accounts_having(n_pending, n_delivered)
        return self.rng.choice(fitting) if fitting else None

    def _make_steps(self, account: Account, kinds: Sequence[Kind]) -> list[Step] | None:
        maker = StepMaker(self.catalogue, account, self.rng, self.config, moves="modify_user_address" in kinds)
        pending, delivered = account.having("pending"), account.having("delivered")
        self.rng.shuffle(pending)
        self.rng.shuffle(delivered)
        steps: list[Step] = []
        waiting: list[Order] = []  # orders with a new address, whose items may be modified next
        for kind in sorted(kinds, key=lambda kind: _LATE.get(kind, 0)):
            order: Order | None = None
            if kind == "transfer":
                touched = {step.order_id for step in steps}
                free = [order for order in account.orders if order.order_id not in touched]
                order = self.rng.choice(free) if free else None
            elif kind == "modify_items" and waiting and (not pending or self.rng.random() < self.config.shared_order):
                order = waiting.pop()
            elif kind in _PENDING_KINDS or kind in _DELIVERED_KINDS:
                orders = pending if kind in _PENDING_KINDS else delivered
                if not orders:
                    return None
                order = orders.pop()
            step = maker.make(kind, order)
            if step is None:
                return None
            if kind == "modify_address" and order is not None:
                waiting.append(order)
            steps.append(step)
        return self._shuffle(steps)

    def _shuffle(self, steps: list[Step]) -> list[Step]:
        """Put steps in any order that the rules allow: an address before a modification, a transfer last."""
        self.rng.shuffle(steps)
        modified = {step.order_id for step in steps if step.kind == "modify_items"}
        readdressed = {step.order_id for step in steps if step.kind == "modify_address"}
        if modified & readdressed or any(step.kind == "transfer" for step in steps):
            steps.sort(key=lambda step: _LATE.get(step.kind, 0))
        return steps
