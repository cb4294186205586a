"""Hypothesis strategies: any valid handoff graph, with the values that break text formats."""

from __future__ import annotations

from hypothesis import strategies as st

from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.graph_vocabulary import EARLIER_END, RELATIONS, TEXT_TYPES

NASTY_TEXTS = [
    "",
    " ",
    "a ;b",
    ";",
    '"',
    "'",
    "01234",
    "5",
    "true",
    "null",
    ":5",
    "@x",
    "a@b.com",
    "a=b",
    "#W4400917",
    "$1,041.50",
    "credit_card_331883",
    'He said "size \\ 9", {blue}\n\t🙂',
    "no longer needed",
    "goal: x",
    "[a b]",
    "(a=b)",
    "a\u2028b\x85c\x0bd",
    "é e\u0301 العربية 订单",
    "<|endoftext|>",
    "###STOP###",
    "a\r\nb",
    " ; after 1",
]

texts = st.one_of(st.sampled_from(NASTY_TEXTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
scalars = st.one_of(texts, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
node_ids = st.from_regex(r"[A-Za-z0-9_.\-]{1,8}", fullmatch=True)
tool_names = st.sampled_from(["get_order_details", "exchange", "goal", "5", "a.b/c-d"])
SIGNATURES = {"get_order_details": ("order_id",), "exchange": ("order_id", "item ids", "x"), "5": ("a",)}


@st.composite
def graphs(draw: st.DrawFn) -> HandoffGraph:
    """Draw a valid graph: edges of ordering relations follow a hidden order, so there is no cycle."""
    n_steps = draw(st.integers(1, 6))
    nodes: list[dict[str, object]] = []
    edges: list[dict[str, str]] = []
    step_of: list[int] = []
    for step in range(n_steps):
        kind = draw(st.sampled_from([*TEXT_TYPES, "tool_call", "tool_call", "tool_call"]))
        body = {"tool": draw(tool_names)} if kind == "tool_call" else {"text": draw(texts)}
        nodes.append({"type": kind, **body})
        step_of.append(step)
        if kind != "tool_call":
            continue
        call = len(nodes) - 1
        names = [*SIGNATURES.get(str(body["tool"]), ()), "zip", "it=em@x"]
        for name in draw(st.lists(st.sampled_from(names) | texts.filter(bool), max_size=4, unique=True)):
            nodes.append({"type": "tool_arg", "name": name, "value": draw(values)})
            step_of.append(step)
            edges.append({"src": str(len(nodes) - 1), "dst": str(call), "relation": "targets"})
    # Ids: the implicit ones that the compact wire gives, or the author's own.
    implicit = draw(st.booleans())
    if implicit:
        ids, line, argument = [], 0, 0
        for node in nodes:
            line, argument = (line, argument + 1) if node["type"] == "tool_arg" else (line + 1, 0)
            ids.append(f"{line}.{argument}" if argument else str(line))
    else:
        ids = draw(st.lists(node_ids, min_size=len(nodes), max_size=len(nodes), unique=True))
    seen = {(edge["src"], edge["dst"], edge["relation"]) for edge in edges}
    places = st.integers(0, len(nodes) - 1)
    for a, b, relation in draw(st.lists(st.tuples(places, places, st.sampled_from(RELATIONS)), max_size=8)):
        first, second = sorted((a, b))
        if a == b or (step_of[a] == step_of[b] and relation in EARLIER_END):
            continue
        src, dst = (a, b) if relation not in EARLIER_END else (first, second)
        if EARLIER_END.get(relation) == "dst":
            src, dst = second, first
        if relation == "targets" and nodes[src]["type"] == "tool_arg" and nodes[dst]["type"] == "tool_call":
            continue  # an argument has one call
        if (str(src), str(dst), relation) not in seen:
            seen.add((str(src), str(dst), relation))
            edges.append({"src": str(src), "dst": str(dst), "relation": relation})
    return HandoffGraph.build(
        [{"id": ids[i], **node} for i, node in enumerate(nodes)],
        [{"src": ids[int(e["src"])], "dst": ids[int(e["dst"])], "relation": e["relation"]} for e in edges],
    )
