"""Which words a graph needs: labels under which the rest of the prose can go and the plan is still there."""

from __future__ import annotations

import pytest

from graphhandoff.compress.fields import split_words
from graphhandoff.compress.identifiers import find_lost_identifiers
from graphhandoff.compress.keeping import join_lines
from graphhandoff.compress.protocol import Delegation, ToolCall
from graphhandoff.compress.tokens import count_tokens
from graphhandoff.data.delegations import load_training_delegations
from graphhandoff.data.keep_labels import gives_the_plan, label_words
from graphhandoff.data.label import build_plan_graph
from graphhandoff.data.retail import load_signatures, load_split

RETURN = ToolCall(
    name="return_delivered_order_items",
    arguments={"order_id": "#W1000001", "item_ids": ["7700000009"], "payment_method_id": "paypal_7"},
)
EXCHANGE = ToolCall(
    name="exchange_delivered_order_items",
    arguments={
        "order_id": "#W1000001",
        "item_ids": ["7700000001", "7700000002"],
        "new_item_ids": ["7700000003", "7700000004"],
        "payment_method_id": "paypal_7",
    },
)


def kept(prose: str, *calls: ToolCall, facts: tuple[str, ...] = ()) -> str:
    graph = build_plan_graph(calls, facts, signatures=load_signatures())
    lines = [split_words(line) for line in prose.split("\n")]
    return join_lines(lines, label_words(prose, graph))


def test_a_value_is_kept_where_the_operation_is_and_not_where_it_is_merely_talked_about() -> None:
    prose = (
        "In #W1000001 she got a lamp, 7700000009, paid by paypal_7. Not #W1000002, by the way. "
        "Please return 7700000009 from #W1000001 with the refund to paypal_7. She likes lamps."
    )
    assert kept(prose, RETURN) == "return 7700000009 #W1000001 paypal_7."


def test_a_value_told_elsewhere_is_fetched_from_there() -> None:
    prose = "The order is #W1000001. She pays with paypal_7.\n\nNow return 7700000009, please."
    assert kept(prose, RETURN) == "#W1000001. paypal_7.\n\nreturn 7700000009."


def test_pairs_keep_their_joints_and_order() -> None:
    prose = (
        "Exchange in #W1000001 the mug 7700000001 (blue) for 7700000003 (red) and also the cup 7700000002 into "
        "7700000004, on paypal_7."
    )
    text = kept(prose, EXCHANGE)
    assert text == "Exchange #W1000001 7700000001 for 7700000003 7700000002 into 7700000004, paypal_7."


def test_names_of_parameters_stay_beside_their_lists() -> None:
    prose = (
        "Then run exchange_delivered_order_items: order #W1000001, item_ids being 7700000001 and 7700000002, "
        "new_item_ids being 7700000003 and 7700000004, paypal_7."
    )
    assert "item_ids 7700000001 7700000002, new_item_ids 7700000003 7700000004, paypal_7." in kept(prose, EXCHANGE)


def test_a_fact_is_kept_with_the_order_to_tell_it() -> None:
    prose = "It comes to 918.43 in all, I reckon. Return it. Afterwards tell her that 918.43 will be on the card."
    assert kept(prose, facts=("918.43",)).endswith("tell her that 918.43.")


def test_words_that_the_graph_does_not_need_are_dropped() -> None:
    assert kept("The weather is fine and the garden hose is long.") == ""


def test_a_prose_of_one_line_or_none_is_no_trouble() -> None:
    assert kept("", RETURN) == ""
    assert kept("return", RETURN) == "return"


@pytest.fixture(scope="module")
def delegations() -> tuple[Delegation, ...]:
    return load_training_delegations(load_split("retail_pinned_50"))


def test_on_real_prose_the_kept_words_are_a_sixth_of_the_tokens_and_hold_every_identifier(
    delegations: tuple[Delegation, ...],
) -> None:
    n_prose = n_kept = n_plans = 0
    for delegation in delegations:
        assert delegation.graph is not None
        labels = label_words(delegation.prose, delegation.graph)
        text = join_lines([split_words(line) for line in delegation.prose.split("\n")], labels)
        assert find_lost_identifiers(delegation.iter_plan_identifiers(), text) == ()
        n_prose += count_tokens(delegation.prose)
        n_kept += count_tokens(text)
        n_plans += gives_the_plan(delegation, labels)
    assert n_prose > 6 * n_kept
    # The literal reader gets 23 of these 34 plans out of the whole prose.
    assert n_plans >= 20


def test_a_plan_is_not_given_if_a_needed_word_is_missing(delegations: tuple[Delegation, ...]) -> None:
    delegation = next(d for d in delegations if d.graph and gives_the_plan(d, label_words(d.prose, d.graph)))
    assert delegation.graph is not None
    labels = label_words(delegation.prose, delegation.graph)
    assert not gives_the_plan(delegation, [False] * len(labels))
