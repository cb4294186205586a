"""Each protocol's own promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphhandoff.compress.literal import read_message
from graphhandoff.compress.predictive_delta import DeltaError, PredictiveDelta, apply_delta, write_delta
from graphhandoff.compress.protocol import (
    PROTOCOL_IDS,
    CheckpointMissingError,
    Delegation,
    Draft,
    Protocol,
    UnknownProtocolError,
    load_protocol_class,
)
from graphhandoff.compress.routed_ngh import RoutedNGH
from graphhandoff.compress.router import AlwaysGraph, NaturalLanguageDefault, RuleRouter
from graphhandoff.compress.tfidf import TfIdf
from graphhandoff.compress.tokens import UnknownTokenizerError, count_tokens
from graphhandoff.compress.wire import parse, write
from tests.test_cases import LIBRARY, LIBRARY_PROSE, SIGNATURES
from tests.tools import TOOLS

PLAN = 'get_order_details #W4400917\ncancel_pending_order #W4400917 "ordered by mistake"\npost: tell 54.04'


def delegation(plan: str | None = PLAN, text: str = "I want to cancel my order") -> Delegation:
    graph = parse(plan, "compact", SIGNATURES) if plan is not None else None
    prose = "Look up order #W4400917, cancel it (ordered by mistake) and tell the customer that 54.04 comes back."
    return Delegation(task_id="t", prose=prose, graph=graph, task_text=text)


def test_there_are_eight_protocols_and_each_says_who_it_is() -> None:
    assert len(PROTOCOL_IDS) == 8
    for protocol_id in PROTOCOL_IDS:
        try:
            protocol_class = load_protocol_class(protocol_id)
        except CheckpointMissingError as error:
            assert "graphhandoff train" in str(error)  # noqa: PT017
            continue
        assert protocol_class.id == protocol_id
    with pytest.raises(UnknownProtocolError, match="allowed: natural_language, routed_ngh"):
        load_protocol_class("smoke_signals")


def test_a_draft_that_loses_an_identifier_is_replaced_by_the_prose_and_says_so() -> None:
    class Forgetful(Protocol):
        id, schema_aware, trained = "forgetful", False, False

        def draft(self, delegations: list[Delegation]) -> list[Draft]:  # type: ignore[override]
            return [Draft(text="cancel it", route="compressed") for _ in delegations]

    message = Forgetful().encode([delegation(None)])[0]
    assert message.text == delegation().prose
    assert message.route == "natural_language"
    assert message.fallback is not None
    assert "2 of 2 identifiers lost: #W4400917, 54.04" in message.fallback
    assert message.details["unsent"] == "cancel it"


def test_routed_ngh_sends_the_graph_or_the_prose_as_the_router_says() -> None:
    graph = RoutedNGH(TOOLS, AlwaysGraph()).encode([delegation()])[0]
    assert (graph.route, graph.text) == ("graph", PLAN)
    for router in (None, NaturalLanguageDefault()):
        prose = RoutedNGH(TOOLS, router).encode([delegation()])[0]
        assert (prose.route, prose.fallback, prose.compression) == ("natural_language", None, 1.0)


def test_routed_ngh_never_sends_a_graph_that_breaks_the_contract() -> None:
    message = RoutedNGH(TOOLS, AlwaysGraph()).encode([delegation("drop_tables x=#W4400917")])[0]
    assert message.route == "natural_language"
    assert message.fallback is not None
    assert "UnknownToolError" in message.fallback


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("You want to exchange the lamp for a brighter one.", "graph"),
        ("Cancelling both orders is what you are after.", "graph"),
        ("", "natural_language"),
        ("Hello there!", "natural_language"),
        ("Please rewrite my letter and return it to me.", "natural_language"),
    ],
)
def test_the_rule_router_prefers_prose_on_any_doubt(text: str, choice: str) -> None:
    assert RuleRouter().choose(text) == choice


words = st.sampled_from(["a", "b 1", "b 2", "c x y", "post: tell 5", "+ odd", "3 odd"])


@given(st.lists(words, min_size=1), st.lists(words, min_size=1))
def test_a_delta_gives_back_the_plan(base: list[str], lines: list[str]) -> None:
    assert apply_delta(base, write_delta(base, lines)) == lines


def test_the_receiver_rebuilds_the_plan_from_the_delta_and_the_library_alone() -> None:
    sender, receiver = PredictiveDelta(LIBRARY, TOOLS), PredictiveDelta(LIBRARY, TOOLS)
    message = sender.encode([delegation()])[0]
    assert message.text.startswith("base ")
    assert receiver.decode(message.text) == PLAN
    calls = read_message(receiver.decode(message.text), TOOLS).calls
    assert [call.name for call in calls] == ["get_order_details", "cancel_pending_order"]


def test_a_plan_that_was_predicted_costs_next_to_nothing() -> None:
    predicted = LIBRARY[0].graph
    assert predicted is not None
    message = PredictiveDelta(LIBRARY, TOOLS).encode([LIBRARY[0].model_copy(update={"task_id": "t"})])[0]
    assert message.text == "base 0\n1-2"
    assert message.n_tokens < count_tokens(write(predicted, "compact", SIGNATURES)) / 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("base 99\n1", "line 1.*no plan"),
        ("hello", "line 1.*no plan"),
        ("base 0\n7", "line 2.*does not have"),
        ("base 0\n9 x", "line 2.*changes line 9"),
        ("base 0\nnonsense", "line 2.*no edit"),
    ],
)
def test_a_delta_that_cannot_be_applied_says_why(text: str, says: str) -> None:
    with pytest.raises(DeltaError, match=says):
        PredictiveDelta(LIBRARY, TOOLS).decode(text)


def test_the_prediction_is_the_nearest_training_task() -> None:
    protocol = PredictiveDelta(LIBRARY, TOOLS)
    assert protocol.predict(["exchange the lamp", "return a bottle", "cancel, no longer needed"]) == ["1", "2", "0"]


def test_tfidf_keeps_telling_words_and_its_rate() -> None:
    prose = "The customer said that the kettle in the order is broken and that the kettle must be sent back by courier."
    message = TfIdf(LIBRARY_PROSE, rate=0.25).encode([delegation(None).model_copy(update={"prose": prose})])[0]
    assert "kettle" in message.text
    assert "broken" in message.text
    assert " the " not in f" {message.text} "
    assert message.details["rate_achieved"] == pytest.approx(0.25, abs=0.05)


def test_tfidf_refuses_nothing_to_fit_on_and_a_rate_outside_its_range() -> None:
    with pytest.raises(ValueError, match="no training prose"):
        TfIdf([])
    with pytest.raises(ValueError, match="rate must be"):
        TfIdf(LIBRARY_PROSE, rate=0)


def test_compression_is_counted_in_the_named_tokenizer() -> None:
    message = RoutedNGH(TOOLS, AlwaysGraph()).encode([delegation()])[0]
    assert message.tokenizer == "cl100k_base"
    assert message.compression == pytest.approx(count_tokens(delegation().prose) / count_tokens(PLAN))
    with pytest.raises(UnknownTokenizerError, match="cl100k_base"):
        count_tokens("x", "morse")


def test_the_json_wire_is_the_same_plan_at_a_higher_price() -> None:
    compact, paper = (RoutedNGH(TOOLS, AlwaysGraph(), wire).encode([delegation()])[0] for wire in ("compact", "json"))  # type: ignore[arg-type]
    graph = delegation().graph
    assert graph is not None
    assert paper.text == write(graph, "json")
    assert paper.n_tokens > 2 * compact.n_tokens
