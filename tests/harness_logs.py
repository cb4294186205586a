"""Writes conversations as the harnesses write them, for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphhandoff.data.environment import Outcome

Message = dict[str, Any]


def openai_messages(outcomes: Sequence[Outcome], said: str = "") -> list[Message]:
    """A conversation as tau-bench records it: arguments as text, refusals as text that starts with Error."""
    messages: list[Message] = [{"role": "system", "content": "policy"}, {"role": "user", "content": "Hello"}]
    for i, outcome in enumerate(outcomes):
        function = {"name": outcome.call.name, "arguments": json.dumps(outcome.call.arguments)}
        text = outcome.text if outcome.ok else f"Error: {outcome.text}"
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{i}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{i}", "name": outcome.call.name, "content": text},
        ]
    if said:
        messages.append({"role": "assistant", "content": said})
    return [*messages, {"role": "user", "content": "###STOP###"}]


def tau2_messages(outcomes: Sequence[Outcome], said: str = "") -> list[Message]:
    """A conversation as tau2-bench records it: arguments as objects, results that say whether they are errors."""
    messages: list[Message] = [{"role": "assistant", "content": "Hi! How can I help?", "tool_calls": None}]
    for i, outcome in enumerate(outcomes):
        call = {"id": f"c{i}", "name": outcome.call.name, "arguments": outcome.call.arguments, "requestor": "assistant"}
        result = {
            "id": f"c{i}",
            "role": "tool",
            "content": outcome.text,
            "requestor": "assistant",
            "error": not outcome.ok,
        }
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}, result]
    return [*messages, *([{"role": "assistant", "content": said}] if said else [])]


def inspect_messages(outcomes: Sequence[Outcome], said: str = "") -> list[Message]:
    """The agent's conversation as Inspect stores it: a refusal has no content but an error."""
    messages: list[Message] = [
        {"id": "m0", "role": "system", "content": "policy"},
        {"id": "m1", "role": "user", "content": "Hello"},
    ]
    for i, outcome in enumerate(outcomes):
        call = {"id": f"c{i}", "function": outcome.call.name, "arguments": outcome.call.arguments, "type": "function"}
        result: Message = {"id": f"t{i}", "role": "tool", "tool_call_id": f"c{i}", "function": outcome.call.name}
        if outcome.ok:
            result["content"] = outcome.text
        else:
            result |= {"content": "", "error": {"type": "unknown", "message": outcome.text}}
        messages += [{"id": f"a{i}", "role": "assistant", "content": "", "tool_calls": [call]}, result]
    return [*messages, *([{"id": "end", "role": "assistant", "content": said}] if said else [])]


def write_tau_bench(path: Path, *trajs: Any, **fields: Any) -> Path:
    """A result file of tau-bench with one trial per conversation, all of task 7."""
    info = {"task": {"user_id": "u", "instruction": "You want a refund.", "outputs": []}, "source": "user"}
    entries = [
        {"task_id": 7, "reward": 1.0, "info": info, "traj": traj, "trial": i, **fields} for i, traj in enumerate(trajs)
    ]
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def write_tau2_bench(path: Path, *conversations: Any, **fields: Any) -> Path:
    """A result file of tau2-bench with one simulation per conversation, all of task 7."""
    scenario = {"persona": None, "instructions": {"reason_for_call": "You want a refund.", "known_info": "."}}
    simulation = {"task_id": "7", "termination_reason": "user_stop", "reward_info": {"reward": 1.0}, **fields}
    content = {
        "timestamp": "2026-01-01",
        "info": {},
        "tasks": [{"id": "7", "user_scenario": scenario}],
        "simulations": [{**simulation, "id": str(i), "trial": i, "messages": m} for i, m in enumerate(conversations)],
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def build_sample(stored: list[Message], sample_id: str = "7", epoch: int = 1, **fields: Any) -> Any:
    """A sample of the tau2 evaluation: the agent's messages in the store, the simulated customer's as its own."""
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
    from inspect_ai.scorer import Score

    scenario = {"persona": None, "instructions": {"reason_for_call": "You want a refund."}}
    prompts = [ChatMessageSystem(content="You are a customer."), ChatMessageUser(content="Begin.")]
    defaults: dict[str, Any] = {
        "target": "",
        "input": prompts,
        "messages": [*prompts, ChatMessageAssistant(content="Hello"), ChatMessageUser(content="Done.")],
        "metadata": {"instance": "RetailAgent", "task": {"id": sample_id, "user_scenario": scenario}},
        "store": {"StoredAgentState:RetailAgent:messages": stored, "RetailAgentTools:RetailTools:db": {"users": {}}},
        "scores": {"retail_scorer": Score(value="C")},
    }
    return EvalSample(id=sample_id, epoch=epoch, **{**defaults, **fields})


def write_inspect(path: Path, *samples: Any, sample_ids: Sequence[str] = ("7",), epochs: int = 1) -> Path:
    """An Inspect log of these samples; ``sample_ids`` and ``epochs`` are what was planned."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, write_eval_log

    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="tau2_retail",
        dataset=EvalDataset(name="retail", sample_ids=list(sample_ids)),
        model="mockllm/model",
        config=EvalConfig(epochs=epochs),
    )
    write_eval_log(EvalLog(status="success", eval=spec, samples=list(samples)), str(path))
    return path
