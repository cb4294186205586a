"""The hybrid through the real library: field lines an executor can act on, and notes that the classifier shortens."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.hybrid import Hybrid, extract_fields
from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.compress.literal import read_message
from graphhandoff.compress.protocol import Delegation, Message
from tests.tiny_models import save_token_classifier
from tests.tools import TOOLS

FILLER = "The customer talks about the weather and the garden hose."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_token_classifier(tmp_path_factory.mktemp("model") / "any")


@pytest.fixture(scope="module")
def hybrid(model: Path) -> Hybrid:
    return Hybrid(model=str(model), rate=0.3)


def encode(hybrid: Hybrid, prose: str) -> Message:
    return hybrid.encode([Delegation(task_id="t", prose=prose)])[0]


def test_an_operation_stands_on_one_line_with_its_ids_in_reading_order(hybrid: Hybrid) -> None:
    call = "exchange_delivered_order_items: #W1, 1151293680 -> 7706410293, credit_card_1."
    assert encode(hybrid, f"{FILLER} {call} {FILLER}").text.split("\n")[0] == call


def test_a_delegation_of_two_operations_is_two_lines_in_their_order(hybrid: Hybrid) -> None:
    prose = f"First cancel #W45, reason “no longer needed”. {FILLER} Then return 7700000009 from #W44 to paypal_7."
    lines = encode(hybrid, prose).text.split("\n")
    assert [find_identifiers(line) for line in lines if find_identifiers(line)] == [
        ["#W45"],
        ["7700000009", "#W44", "paypal_7"],
    ]
    assert "cancel #W45, reason “no longer needed”." in lines[0]
    assert lines[-1].startswith("notes: ")


def test_a_call_written_as_a_line_is_read_as_it_was(hybrid: Hybrid) -> None:
    line = "exchange_delivered_order_items #W44 [7700000009 7700000009] [7700000005 7700000002] credit_card_1"
    message = encode(hybrid, f"{FILLER}\n{line}\n{FILLER}")
    assert line in message.text.split("\n")
    (call,) = read_message(message.text, TOOLS).calls
    assert call.arguments["item_ids"] == ["7700000009", "7700000009"]
    assert call.arguments["new_item_ids"] == ["7700000005", "7700000002"]


def test_every_kind_of_identifier_is_a_field_byte_for_byte(hybrid: Hybrid) -> None:
    prose = (
        f"{FILLER} She is jo.lee+shop@example.com, account jo_lee_1234, ZIP 01234, order #W4400917, item 7700112233, "
        f"paid $1,041.50 with gift_card_331883 and 918.43 by paypal_77. {FILLER}"
    )
    message = encode(hybrid, prose)
    assert find_identifiers(message.text) == find_identifiers(prose)
    assert len(find_identifiers(prose)) == 9
    assert not find_identifiers(message.text.partition("notes: ")[2])


def test_the_exception_stays_with_its_operation(hybrid: Hybrid) -> None:
    for exception in ("everything *except* the tablet", "everything—except the tablet"):
        first = encode(hybrid, f"Please return {exception} from the order #W4400917. {FILLER}").text.split("\n")[0]
        assert first.startswith("return ")
        assert first.index("return") < first.index("except") < first.index("the tablet") < first.index("#W4400917")


def test_the_rate_is_that_of_the_remainder(model: Path) -> None:
    prose = "Cancel #W4400917 today. " + f"{FILLER} " * 20
    achieved = []
    for rate in (0.2, 0.5, 0.8):
        message = encode(Hybrid(model=str(model), rate=rate), prose)
        assert message.details["rate_asked"] == rate
        achieved.append(float(str(message.details["rate_achieved"])))
        assert achieved[-1] == pytest.approx(rate, abs=0.2)
    assert achieved == sorted(achieved)


def test_what_the_rest_denies_or_excepts_keeps_its_number(model: Path) -> None:
    calls = [
        ("exchange_delivered_order_items", {"order_id": "#W0000044", "item_ids": ["7700000009"]}),
        ("return_delivered_order_items", {"order_id": "#W0000045", "item_ids": ["7700000007"]}),
    ]
    calls[0][1].update(new_item_ids=["7700000005"], payment_method_id="credit_card_0000007")
    calls[1][1].update(payment_method_id="credit_card_0000007")
    nodes, edges = [], []
    for i, (tool, arguments) in enumerate(calls):
        nodes.append({"id": f"{i}", "type": "tool_call", "tool": tool})
        for name, value in arguments.items():
            nodes.append({"id": f"{i}.{name}", "type": "tool_arg", "name": name, "value": value})
            edges.append({"src": f"{i}.{name}", "dst": f"{i}", "relation": "targets"})
    prose = (
        "Exchange 7700000009 for 7700000005 in #W0000044 with credit_card_0000007. "
        "The 7700000007 of #W0000045 goes back, everything except 7700000009, "
        "and she does not want #W0000044, credit_card_0000007 is right."
    )
    delegation = Delegation(task_id="t", prose=prose, graph=HandoffGraph.build(nodes, edges))
    (message,) = Hybrid(TOOLS, model=str(model), rate=1.0).encode([delegation])
    call = "exchange_delivered_order_items #W0000044 [7700000009] [7700000005] credit_card_0000007"
    assert message.text.split("\n")[0] == call
    assert "everything except 7700000009, and she does not want #W0000044," in message.text
    assert message.fallback is None


def test_prose_without_operations_or_ids_is_all_notes(hybrid: Hybrid) -> None:
    message = encode(hybrid, " ".join([FILLER] * 5))
    assert message.text.startswith("notes: ")
    assert message.details["field_lines"] == 0


def test_prose_of_fields_alone_has_no_notes(hybrid: Hybrid) -> None:
    message = encode(hybrid, "Cancel #W1\nCancel #W1\nReturn 7700000009")
    assert message.text == "Cancel #W1\nCancel #W1\nReturn 7700000009"
    assert message.details["rate_achieved"] == 1.0


def test_thousands_of_quotes_in_one_sentence_take_linear_time() -> None:
    sentence = '"a b" c ' * 20_000
    start = time.perf_counter()
    fields, others = extract_fields(sentence)
    assert time.perf_counter() - start < 5
    assert (len(fields), len(others)) == (40_000, 20_000)
