"""The reader of plain text makes the calls that the text orders, and none that it does not. All ids are invented."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphhandoff.compress.literal import read_message
from graphhandoff.compress.literal_text import read_text
from graphhandoff.compress.protocol import ToolParameter, ToolSpec
from graphhandoff.data.retail import load_tools
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


def test_a_comma_inside_quotes_is_part_of_the_value() -> None:
    transfer = ToolSpec(name="transfer", parameters=(ToolParameter(name="summary", type="string"),))
    for text in ('transfer "He wants PayPal, we cannot."', 'transfer summary="He wants PayPal, we cannot."'):
        (call,) = read_text(text, (*TOOLS, transfer))[0]
        assert call.arguments == {"summary": "He wants PayPal, we cannot."}


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


EXCHANGE = "exchange_delivered_order_items"
RETURN = "return_delivered_order_items"


@pytest.mark.parametrize(
    "text",
    [
        "Return item 7700000001, not 7700000002, from #W1111111, refund to paypal_7654321.",
        "Return in #W1111111 all except 7700000002 and 7700000003: 7700000001, to paypal_7654321.",
        "In order #W1111111 return item 7700000001, refund not to gift_card_7654321 but to paypal_7654321.",
    ],
)
def test_what_is_excepted_is_no_value(text: str) -> None:
    assert calls_in(text) == [(RETURN, ["#W1111111", ["7700000001"], "paypal_7654321"])]


def test_the_excepted_order_is_not_the_one_that_is_cancelled() -> None:
    assert calls_in("Cancel all orders other than #W2222222: #W1111111, no longer needed.") == [CANCEL]


@pytest.mark.parametrize(
    "text",
    [
        "Exchange 7700000001 and 7700000002 for 7700000003 and 7700000004 in #W1111111, paypal_7654321.",
        f"{EXCHANGE} #W1111111 7700000001,7700000002 -> 7700000003,7700000004 paypal_7654321",
        f"{EXCHANGE} #W1111111 7700000001, 7700000002 7700000003, 7700000004 paypal_7654321",
    ],
)
def test_a_list_for_a_list_is_paired_in_order(text: str) -> None:
    old, new = ["7700000001", "7700000002"], ["7700000003", "7700000004"]
    assert calls_in(text) == [(EXCHANGE, ["#W1111111", old, new, "paypal_7654321"])]


def test_lists_of_unequal_length_are_not_paired_in_part() -> None:
    text = "Exchange 7700000001, 7700000002, 7700000003 for 7700000004, 7700000005 in #W1111111, paypal_7654321."
    calls, _, skipped = read_text(text, TOOLS)
    assert calls == ()
    assert skipped == (f"{EXCHANGE}: no item_ids can be read",)


def test_a_line_does_not_borrow_its_neighbours_arguments() -> None:
    lines = (
        "cancel_pending_order #W1111111 no longer needed\ncancel_pending_order #W2222222\n"
        "cancel_pending_order #W3333333 ordered by mistake"
    )
    assert calls_in(lines) == [CANCEL, ("cancel_pending_order", ["#W3333333", "ordered by mistake"])]


_PIECES = (
    *(tool.name for tool in TOOLS),
    *(parameter.name for tool in TOOLS for parameter in tool.parameters),
    *"#W1111111 7700000001 paypal_7654321 2+2 return not to for if [ ] ( ) { } = -> , ; : . ' \" “ \\".split(),
    "\n",
    "\n\n- ",
    "no longer needed",
    "\ud800",
)


@given(st.lists(st.sampled_from(_PIECES), max_size=30), st.sampled_from(["", " "]))
def test_any_arrangement_of_names_labels_and_values_is_read_without_an_error(pieces: list[str], gap: str) -> None:
    read_text(gap.join(pieces), TOOLS)


@pytest.mark.parametrize("parameter", [parameter.name for tool in TOOLS for parameter in tool.parameters])
def test_a_label_may_end_the_text(parameter: str) -> None:
    for tool in TOOLS:
        read_text(f"{tool.name} {parameter} ", TOOLS)


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


@pytest.mark.parametrize("between", ['"] ["', '"], ["', "'] ['"])
def test_two_bracketed_lists_are_old_items_and_new_ones(between: str) -> None:
    quote = between[0]
    lists = f"[{quote}7700000001{quote}, {quote}7700000002{between}7700000003{quote}, {quote}7700000004{quote}]"
    text = f"exchange_delivered_order_items, once: #W1000001, {lists}, paypal_1234567."
    (call,) = read_message(text, load_tools()).calls
    assert call.arguments["item_ids"] == ["7700000001", "7700000002"]
    assert call.arguments["new_item_ids"] == ["7700000003", "7700000004"]


def test_marks_of_the_prose_are_no_part_of_an_id_and_sums_have_any_number_of_terms() -> None:
    text = 'cancel_pending_order #W1000001, "no longer needed".\ncalculate 1.50 + 2.25 - 0.75'
    cancel, total = read_message(text, load_tools()).calls
    assert cancel.arguments == {"order_id": "#W1000001", "reason": "no longer needed"}
    assert total.arguments == {"expression": "1.50 + 2.25 - 0.75"}


def test_an_address_may_follow_the_id_that_it_belongs_to() -> None:
    text = "modify_user_address jo_lee_1234, 4 Elm Street, Suite 2, Denver, CO, USA, 80280."
    (call,) = read_message(text, load_tools()).calls
    assert call.arguments["user_id"] == "jo_lee_1234"
    assert (call.arguments["address1"], call.arguments["zip"]) == ("4 Elm Street", "80280")
