"""Inputs with a known right behaviour, through every protocol that needs no checkpoint (the others have their own)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from graphhandoff.compress.identifiers import find_identifiers, find_lost_identifiers
from graphhandoff.compress.literal import read_message
from graphhandoff.compress.natural_language import NaturalLanguage
from graphhandoff.compress.predictive_delta import PredictiveDelta
from graphhandoff.compress.protocol import Delegation, Message, Protocol
from graphhandoff.compress.routed_ngh import RoutedNGH
from graphhandoff.compress.router import AlwaysGraph
from graphhandoff.compress.tfidf import TfIdf
from graphhandoff.compress.wire import parse
from tests.tools import TOOLS

SIGNATURES = {tool.name: tool.signature for tool in TOOLS}
LIBRARY_PROSE = [
    "Please look up the order and cancel it, the customer no longer needs it and will be told about the refund.",
    "Exchange the lamp in the delivered order for the brighter one and charge the difference to the card.",
    "Return the bottle, refund to the card, and tell the customer that an e-mail follows with what to do.",
]
LIBRARY = [
    Delegation(
        task_id=str(i),
        prose=prose,
        task_text=prose,
        graph=parse('get_order_details #W1\ncancel_pending_order #W1 "no longer needed"', "compact", SIGNATURES),
    )
    for i, prose in enumerate(LIBRARY_PROSE)
]
PROTOCOLS: dict[str, Callable[[], Protocol]] = {
    "natural_language": NaturalLanguage,
    "routed_ngh": lambda: RoutedNGH(TOOLS, AlwaysGraph()),
    "routed_ngh_json": lambda: RoutedNGH(TOOLS, AlwaysGraph(), "json"),
    "predictive_delta": lambda: PredictiveDelta(LIBRARY, TOOLS),
    "tfidf": lambda: TfIdf(LIBRARY_PROSE, rate=0.3),
}


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    return PROTOCOLS[request.param]()


def encode(protocol: Protocol, prose: str, graph: str | None = None) -> Message:
    parsed = parse(graph, "compact", SIGNATURES) if graph is not None else None
    return protocol.encode([Delegation(task_id="t", prose=prose, graph=parsed, task_text=prose)])[0]


def test_all_four_ids_cross_byte_for_byte(protocol: Protocol) -> None:
    prose = "Exchange 7700112233 in order #W4400917 for 7700445566, refund to credit_card_331883."
    message = encode(protocol, prose)
    assert find_lost_identifiers(["7700112233", "#W4400917", "7700445566", "credit_card_331883"], message.text) == ()
    assert message.identifier_recall == 1.0
    assert message.n_identifiers == 4


def test_an_order_id_survives_among_many_bare_numbers(protocol: Protocol) -> None:
    prose = " ".join(str(n) for n in range(10, 50)) + " #W4400917"
    assert "#W4400917" in encode(protocol, prose).text


def test_a_hundred_and_thirty_item_ids_are_no_problem(protocol: Protocol) -> None:
    ids = [str(7_700_000_000 + 7 * i) for i in range(130)]
    message = encode(protocol, "Return all of these items: " + ", ".join(ids) + ".")
    assert find_lost_identifiers(ids, message.text) == ()


@pytest.mark.parametrize("prose", ["", "   ", "\n\n\t "])
def test_nothing_gives_an_empty_message_flagged(protocol: Protocol, prose: str) -> None:
    message = encode(protocol, prose)
    assert (message.text, message.compression, message.flags) == ("", 1.0, ("empty",))


@pytest.mark.parametrize("prose", ["ok", "the of and"])
def test_too_little_to_compress_crosses_unchanged_flagged(protocol: Protocol, prose: str) -> None:
    message = encode(protocol, prose)
    assert (message.text, message.flags) == (prose, ("too_short",))


def test_a_very_long_delegation_keeps_its_ids_in_bounded_time(protocol: Protocol) -> None:
    filler = "the customer talks about the weather and the garden hose and a lamp " * 1100
    prose = f"#W4400917 {filler} 7700112233 {filler} credit_card_331883"
    start = time.perf_counter()
    message = encode(protocol, prose)
    assert time.perf_counter() - start < 10
    assert message.n_prose_tokens > 25_000
    assert find_lost_identifiers(["#W4400917", "7700112233", "credit_card_331883"], message.text) == ()


@pytest.mark.parametrize("mark", ["<|endoftext|>", "<|im_end|>", "</s>", "[SEP]", "###STOP###"])
def test_special_strings_are_plain_text(protocol: Protocol, mark: str) -> None:
    message = encode(protocol, f"Cancel order #W4400917 please {mark} and then refund credit_card_331883 today.")
    assert find_lost_identifiers(["#W4400917", "credit_card_331883"], message.text) == ()
    assert message.n_tokens > 0


def test_other_scripts_around_an_id_stay_valid(protocol: Protocol) -> None:
    prose = "请取消订单#W4400917，谢谢🙂。 Réserver e\u0301 العنصر 7700112233 الآن من فضلك."
    message = encode(protocol, prose)
    message.text.encode("utf-8")
    assert find_lost_identifiers(["#W4400917", "7700112233"], message.text) == ()


def test_zip_and_amount_stay_as_given(protocol: Protocol) -> None:
    message = encode(protocol, "Ship the order to ZIP 01234, the total of the order is $1,041.50 in the end.")
    assert find_lost_identifiers(["01234", "$1,041.50"], message.text) == ()


def test_the_exception_is_in_the_message(protocol: Protocol) -> None:
    prose = "Please return everything *except* the tablet from the delivered order #W4400917 of last week."
    text = encode(protocol, prose).text
    assert "*except* the tablet" in text


OLD, NEW = ["7700000009", "7700000009", "7700000001"], ["7700000005", "7700000002", "7700000005"]
PAIRS = f"exchange_delivered_order_items #W44 [{' '.join(OLD)}] [{' '.join(NEW)}] credit_card_1"


def test_equal_ids_and_pairs_keep_number_order_and_pairing(protocol: Protocol) -> None:
    prose = f"Run {PAIRS} now."
    message = encode(protocol, prose, PAIRS)
    text = message.text if message.route == "natural_language" else protocol.decode(message.text)
    if message.route == "graph":
        (call,) = read_message(text, TOOLS).calls
        assert (call.arguments["item_ids"], call.arguments["new_item_ids"]) == (OLD, NEW)
    else:
        assert find_identifiers(text) == find_identifiers(prose)


def test_encoding_twice_gives_the_same(protocol: Protocol) -> None:
    prose = "Cancel order #W4400917 because the customer ordered it by mistake, then say that the refund takes days."
    assert encode(protocol, prose) == encode(protocol, prose)
