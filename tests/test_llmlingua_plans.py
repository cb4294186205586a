"""The LLMLingua rows where the sender knows the plan: they may drop what it does not need, and never what it does.

The classifiers have random weights, so what holds here holds for any.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from graphhandoff.compress.hybrid import Hybrid
from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.compress.literal import read_message
from graphhandoff.compress.llmlingua2 import LLMLingua2
from graphhandoff.compress.protocol import Delegation, Protocol, ToolCall
from graphhandoff.data.delegations import load_delegations, load_reference_delegations
from graphhandoff.data.label import build_plan_graph
from graphhandoff.data.retail import load_signatures, load_split, load_tools
from tests.tiny_models import save_token_classifier

EXCHANGE = ToolCall(
    name="exchange_delivered_order_items",
    arguments={
        "order_id": "#W4400917",
        "item_ids": ["7700112233", "7700112233"],
        "new_item_ids": ["7700445566", "7700445577"],
        "payment_method_id": "credit_card_331883",
    },
)
GRAPH = build_plan_graph([EXCHANGE], ["54.04"], signatures=load_signatures())
FILLER = "The customer talks about the weather and the garden hose. "


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_token_classifier(tmp_path_factory.mktemp("model") / "any")


@pytest.fixture(scope="module", params=["llmlingua2", "hybrid", "hybrid without tools"])
def protocol(request: pytest.FixtureRequest, model: Path) -> Protocol:
    if request.param == "llmlingua2":
        return LLMLingua2(model=str(model), threshold=0.6)
    return Hybrid(() if "without" in request.param else load_tools(), model=str(model), threshold=0.6)


def test_no_identifier_of_a_real_plan_is_lost(protocol: Protocol) -> None:
    real = load_delegations(load_split("retail_pinned_50").task_ids[:12])
    real += load_delegations([r.task_id for r in load_reference_delegations("validation")][:12], "validation")
    for message in protocol.encode(real):
        assert message.identifiers_lost == ()
        assert message.identifier_recall == 1.0
        assert message.route == "compressed", message.fallback


def test_what_the_plan_does_not_need_may_go(protocol: Protocol) -> None:
    prose = f"{FILLER}Her old order was #W1000001, with 7700999999. {FILLER * 3}"
    graph = build_plan_graph([ToolCall(name="get_order_details", arguments={"order_id": "#W1000001"})])
    (message,) = protocol.encode([Delegation(task_id="t", prose=prose, graph=graph)])
    assert message.identifiers_lost == ()
    assert message.n_identifiers == 1


def test_two_equal_items_of_one_list_and_their_order_survive(protocol: Protocol) -> None:
    prose = (
        f"{FILLER}In #W4400917 she has two mugs. Exchange 7700112233 for 7700445566 and 7700112233 for 7700445577, on "
        f"credit_card_331883. {FILLER}Tell her that the difference is 54.04. {FILLER}"
    )
    (message,) = protocol.encode([Delegation(task_id="t", prose=prose, graph=GRAPH)])
    items = [identifier for identifier in find_identifiers(message.text) if identifier.startswith("7700")]
    if message.details.get("field_lines"):  # the tool's own form: old ones, then new ones
        assert items == ["7700112233", "7700112233", "7700445566", "7700445577"]
    else:
        assert items == ["7700112233", "7700445566", "7700112233", "7700445577"]
    assert "54.04" in message.text
    assert "54.04" in read_message(message.text, load_tools()).said


def test_exceptions_stay_with_what_they_except(protocol: Protocol) -> None:
    prose = f"{FILLER}Look at #W4400917 but change nothing *except* the blue tablet, never #W1000001. {FILLER}"
    graph = build_plan_graph([ToolCall(name="get_order_details", arguments={"order_id": "#W4400917"})])
    (message,) = protocol.encode([Delegation(task_id="t", prose=prose, graph=graph)])
    assert "*except* the blue tablet" in message.text
    if "#W1000001" in message.text:
        assert "never #W1000001" in message.text


def test_a_long_delegation_with_a_plan_takes_bounded_time(protocol: Protocol) -> None:
    prose = f"The order is #W4400917. {FILLER * 1200}\n\nOld item 7700112233 and 7700112233. {FILLER * 1200}\n\n"
    prose += "New ones: 7700445566, 7700445577, pay by credit_card_331883. Tell her 54.04."
    start = time.perf_counter()
    (message,) = protocol.encode([Delegation(task_id="t", prose=prose, graph=GRAPH)])
    assert time.perf_counter() - start < 60
    assert message.identifiers_lost == ()
    assert message.text.count("7700112233") == 2


@pytest.mark.parametrize("prose", ["", " \n", "Only words, and no identifier of the plan at all in here."])
def test_a_prose_that_lacks_the_plans_identifiers_says_so(protocol: Protocol, prose: str) -> None:
    (message,) = protocol.encode([Delegation(task_id="t", prose=prose, graph=GRAPH)])
    assert set(message.identifiers_lost) == set(GRAPH_IDENTIFIERS)
    assert message.fallback is not None or not prose.strip()


GRAPH_IDENTIFIERS = ("#W4400917", "7700112233", "7700445566", "7700445577", "credit_card_331883", "54.04")
