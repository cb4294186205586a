"""The reader of plain text makes the calls that the text orders, and none that it does not. All ids are invented."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphhandoff.compress.literal_text import read_text
from tests.tools import TOOLS


def calls_in(text: str) -> list[tuple[str, list[object]]]:
    return [(call.name, list(call.arguments.values())) for call in read_text(text, TOOLS)[0]]


CANCEL = ("cancel_pending_order", ["#W1111111", "no longer needed"])


@pytest.mark.parametrize(
    "text",
    [
        'cancel_pending_order #W1111111 "no longer needed"',
        'cancel_pending_order order_id=#W1111111 reason="no longer needed"',
        'Call cancel_pending_order on #W1111111, reason "no longer needed".',
        "Please cancel the pending order #W1111111; the reason is no longer needed.",
        "It is still pending. So cancel order #W1111111.\nHer reason: no longer needed.",
        "1. Cancel #W1111111 (no longer needed).",
        "The order is #W1111111 and it's no longer needed. The one action is a cancellation.",
    ],
)
def test_an_order_to_act_is_a_call_however_it_is_put(text: str) -> None:
    assert calls_in(text) == [CANCEL]


@pytest.mark.parametrize(
    "text",
    [
        "Do not cancel #W1111111, although it is no longer needed.",
        "Never call cancel_pending_order for #W1111111 (no longer needed).",
        "He wanted to cancel #W1111111 as no longer needed.",
        "If the exchange is refused, cancel #W1111111 as no longer needed.",
        "Order #W1111111 was cancelled; it was no longer needed.",
        "cancel order needed longer refund",
        "",
    ],
)
def test_what_is_denied_told_or_only_a_fall_back_is_no_call(text: str) -> None:
    assert calls_in(text) == []


def test_pairs_and_repeats_keep_their_order() -> None:
    text = (
        "Exchange in the delivered order #W1111111: 7700000009 -> 7700000005, 7700000009 -> 7700000002, "
        "7700000001 -> 7700000005, difference to gift_card_1234567."
    )
    old, new = ["7700000009", "7700000009", "7700000001"], ["7700000005", "7700000002", "7700000005"]
    assert calls_in(text) == [("exchange_delivered_order_items", ["#W1111111", old, new, "gift_card_1234567"])]


@pytest.mark.parametrize("between", ["for", "to", "→", "becomes", "(blue, $5.10) into", "with the red one, item"])
def test_old_and_new_are_told_apart_by_what_stands_between(between: str) -> None:
    text = f"Exchange 7700000001 {between} 7700000002 in #W1111111, paid by paypal_7654321."
    assert calls_in(text) == [
        ("exchange_delivered_order_items", ["#W1111111", ["7700000001"], ["7700000002"], "paypal_7654321"])
    ]


def test_a_decoy_in_a_warning_lends_no_value() -> None:
    text = (
        "Return item 7700000001 from #W1111111.\nBeware of #W2222222, it stays.\n"
        "The refund goes to credit_card_1234567. Don't use paypal_7654321."
    )
    assert calls_in(text) == [("return_delivered_order_items", ["#W1111111", ["7700000001"], "credit_card_1234567"])]


def test_a_missing_argument_is_a_reason_and_no_guess() -> None:
    calls, _, skipped = read_text("Please cancel order #W1111111 today.", TOOLS)
    assert calls == ()
    assert skipped == ("cancel_pending_order: no reason can be read",)


def test_two_values_that_both_fit_from_afar_are_no_value() -> None:
    text = "Accounts paypal_1111111 and credit_card_2222222 exist.\n\nReturn item 7700000001 from #W1111111."
    calls, _, skipped = read_text(text, TOOLS)
    assert calls == ()
    assert skipped == ("return_delivered_order_items: no payment_method_id can be read",)


def test_a_call_told_twice_in_prose_is_made_once_but_lines_are_calls() -> None:
    once = 'Run cancel_pending_order for #W1111111, "no longer needed".'
    prose = f"{once} Again: cancel_pending_order, #W1111111, no longer needed."
    assert calls_in(prose) == [CANCEL]
    assert len(calls_in("get_order_details #W1111111\nget_order_details #W1111111")) == 2


def test_where_tools_are_named_only_names_count() -> None:
    named = "Cancel what must go: cancel_pending_order #W1111111 no longer needed."
    assert calls_in(f"{named} Then cancel order #W2222222 no longer needed.") == [CANCEL]


def test_what_is_said_is_what_the_text_orders_to_tell() -> None:
    said = read_text(
        "The lamp cost 48.15.\n\nTell her that 54.04 comes back. It takes a week.\n\nId 99.99 is internal.", TOOLS
    )[1]
    assert "54.04" in said
    assert "It takes a week" in said
    assert "48.15" not in said
    assert "99.99" not in said
    assert "77.77" not in read_text("Don't tell him that 77.77 was charged.", TOOLS)[1]


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    read_text(text, TOOLS)


@pytest.mark.parametrize(
    "piece",
    [
        "the customer talks about the weather ",
        "cancel #W1111111 ",
        "a, ",
        "(((",
        "if if if ",
        "exchange 7700000001 to ",
        "\n- x",
    ],
)
def test_long_texts_take_bounded_time(piece: str) -> None:
    text = piece * (120_000 // len(piece))
    start = time.perf_counter()
    read_text(text, TOOLS)
    assert time.perf_counter() - start < 10
