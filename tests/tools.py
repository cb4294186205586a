"""A few tools in the shape of the retail ones, so that tests need no benchmark."""

from __future__ import annotations

from graphhandoff.compress.protocol import ToolParameter, ToolSpec

ORDER = ToolParameter(name="order_id", type="string", description="The order id, such as '#W0000000'.")
ITEMS = ToolParameter(name="item_ids", type="array", items="string", description="Item ids, such as '1008292230'.")
NEW_ITEMS = ToolParameter(name="new_item_ids", type="array", items="string", description="such as '1008292230'.")
PAYMENT = ToolParameter(
    name="payment_method_id", type="string", description="such as 'gift_card_0000000' or 'credit_card_0000000'."
)
REASON = ToolParameter(name="reason", type="string", description="either 'no longer needed' or 'ordered by mistake'.")

TOOLS = (
    ToolSpec(name="get_order_details", description="Get an order.", parameters=(ORDER,)),
    ToolSpec(name="cancel_pending_order", description="Cancel a pending order.", parameters=(ORDER, REASON)),
    ToolSpec(
        name="exchange_delivered_order_items",
        description="Exchange items in a delivered order.",
        parameters=(ORDER, ITEMS, NEW_ITEMS, PAYMENT),
    ),
    ToolSpec(
        name="return_delivered_order_items",
        description="Return items of a delivered order.",
        parameters=(ORDER, ITEMS, PAYMENT),
    ),
)
