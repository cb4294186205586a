"""What agents did, read from the files of every harness, also of runs that were cut short, and carried out again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from graphhandoff.compress.contract import check_graph
from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.environment import Outcome, RetailEnvironment, load_environment
from graphhandoff.data.label import Label, label_trajectory
from graphhandoff.data.message_log import Step
from graphhandoff.data.retail import load_tasks, load_tools
from graphhandoff.data.trajectories import (
    Trajectory,
    UnreadableTrajectoriesError,
    read_inspect_log,
    read_tau_bench_results,
    read_trajectories,
    reexecute,
)
from tests.harness_logs import (
    build_sample,
    inspect_messages,
    openai_messages,
    tau2_messages,
    write_inspect,
    write_tau2_bench,
    write_tau_bench,
)

TASKS = {task.id: task for task in load_tasks()}
TOOLS = load_tools()
FIND = ToolCall(
    name="find_user_id_by_name_zip", arguments={"first_name": "Yusuf", "last_name": "Rossi", "zip": "19122"}
)
ORDER = ToolCall(name="get_order_details", arguments={"order_id": "#W2378156"})
WRITE = TASKS["0"].actions[-1]
CANCEL = ToolCall(name="cancel_pending_order", arguments={"order_id": "#W6247578", "reason": "no longer needed"})


@pytest.fixture(scope="module")
def environment() -> RetailEnvironment:
    return load_environment()


def carried_out(*calls: ToolCall) -> tuple[Step, ...]:
    outcomes = load_environment().run(calls).outcomes
    return tuple(Step(call=outcome.call, observation=outcome.text, ok=outcome.ok) for outcome in outcomes)


def calls_of(found: Label) -> list[ToolCall]:
    assert found.graph is not None
    return list(check_graph(found.graph, TOOLS))


def write_all(folder: Path, outcomes: Sequence[Outcome], said: str) -> list[Path]:
    return [
        write_tau_bench(folder / "v1.json", openai_messages(outcomes, said)),
        write_tau2_bench(folder / "v2.json", tau2_messages(outcomes, said)),
        write_inspect(folder / "log.json", build_sample(inspect_messages(outcomes, said))),
        write_inspect(folder / "log.eval", build_sample(inspect_messages(outcomes, said))),
    ]


@pytest.mark.parametrize("task_id", ["0", "12", "35", "64"])
def test_every_layout_gives_the_same_label(task_id: str, tmp_path: Path, environment: RetailEnvironment) -> None:
    task = TASKS[task_id]
    outcomes = environment.run(task.actions).outcomes
    found = []
    for path in write_all(tmp_path, outcomes, "All is done, you get $10."):
        (trajectory,) = read_trajectories(path)
        assert trajectory.oddities == ()
        assert trajectory.task_id == "7"
        assert trajectory.success is True
        assert trajectory.said[-1] == "All is done, you get $10."
        assert "You want a refund." in trajectory.task_text
        assert path.name in trajectory.source
        assert [step.call for step in trajectory.steps] == list(task.actions)
        assert [step.refused for step in trajectory.steps] == [not outcome.ok for outcome in outcomes]
        assert reexecute(trajectory, environment).oddities == ()
        found.append(label_trajectory(trajectory, TOOLS, task.facts).graph)
    assert all(graph == found[0] for graph in found)


def test_trials_and_verdicts_are_kept_apart(tmp_path: Path) -> None:
    first, second = read_tau_bench_results(write_tau_bench(tmp_path / "a.json", [], [], reward=0.0))
    assert (first.task_id, first.trial, second.trial) == ("7", "0", "1")
    assert first.success is False
    (cut,) = read_tau_bench_results(
        write_tau2_bench(tmp_path / "b.json", [], reward_info=None, termination_reason="max_steps")
    )
    assert cut.success is None
    assert cut.oddities == ("the simulation ended early: 'max_steps'",)
    (failed,) = read_tau_bench_results(
        write_tau_bench(tmp_path / "c.json", [], info={"error": "rate limit"}, reward=None, task_id=None)
    )
    assert failed.oddities == ("the task has no id: None", "the run ended with an error: 'rate limit'")


def test_entries_that_are_none_are_told(tmp_path: Path) -> None:
    path = tmp_path / "v1.json"
    path.write_text(json.dumps([None, {"task_id": 3, "traj": [5, {"role": "robot"}]}]))
    broken, odd = read_trajectories(path)
    assert broken.oddities[:2] == ("the task has no id: None", "the trial is no object but None")
    assert odd.oddities == ("message 1 is no message but 5", "message 2 has the unknown role 'robot' and was left out")
    path.write_text(json.dumps({"simulations": [7, {"task_id": "1", "messages": "hello"}]}))
    broken, odd = read_trajectories(path)
    assert "the simulation is no object but 7" in broken.oddities
    assert odd.oddities == ("the messages are no list but 'hello'",)


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_a_log_cut_short_tells_what_it_lacks(suffix: str, tmp_path: Path) -> None:
    from inspect_ai.log import EvalSampleLimit
    from inspect_ai.scorer import Score

    sample = build_sample([], "7", 2, scores=None, limit=EvalSampleLimit(type="message", limit=5))
    extra = build_sample(inspect_messages([]), "9", scores={"a": Score(value="C"), "b": Score(value=[1, 2])})
    path = write_inspect(tmp_path / f"log.{suffix}", sample, extra, epochs=2)
    first, second, third = read_inspect_log(path)
    assert first.oddities == ("the log holds no record of this sample: its run was cut short",)
    assert (second.trial, second.success) == ("2", None)
    assert second.oddities == ("the sample was ended by its message limit",)
    assert (third.task_id, third.success) == ("9", None)
    assert third.oddities == ("the score b is neither a mark nor a number: [1, 2]",)


def test_a_log_whose_store_is_gone_is_not_read_with_the_roles_swapped(tmp_path: Path) -> None:
    (trajectory,) = read_inspect_log(write_inspect(tmp_path / "log.eval", build_sample([], store={})))
    assert trajectory.steps == ()
    assert trajectory.said == ("Done.",)
    assert "the agent's calls are lost" in trajectory.oddities[0]


def test_another_evaluation_keeps_the_conversation_in_its_messages(tmp_path: Path) -> None:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
    from inspect_ai.tool import ToolCall as InspectCall
    from inspect_ai.tool import ToolCallError

    messages = [
        ChatMessageUser(content="Hello"),
        ChatMessageAssistant(
            content="",
            tool_calls=[
                InspectCall(id="a", function=FIND.name, arguments=FIND.arguments),
                InspectCall(id="b", function=ORDER.name, arguments={}, parse_error="bad JSON"),
            ],
        ),
        ChatMessageTool(content="yusuf_rossi_9620", tool_call_id="a", function=FIND.name),
        ChatMessageTool(
            content="", tool_call_id="b", function=ORDER.name, error=ToolCallError(type="parsing", message="bad JSON")
        ),
        ChatMessageAssistant(content="Found."),
    ]
    sample = build_sample([], input="Hello", messages=messages, store={}, metadata={})
    (trajectory,) = read_trajectories(write_inspect(tmp_path / "log.eval", sample))
    assert trajectory.task_text == "Hello"
    assert trajectory.said == ("Found.",)
    assert [step.ok for step in trajectory.steps] == [True, False]
    assert trajectory.steps[1].observation == "bad JSON"
    assert label_trajectory(trajectory, TOOLS).kept == (1,)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('[{"traj": [', "no whole JSON"),
        ('{"a": 1}', "no known layout: got \\['a'\\]"),
        ("5", "no known layout: got int"),
        ("[[" * 5000, "no whole JSON"),
    ],
)
def test_a_file_in_no_known_layout_is_refused_by_name(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(UnreadableTrajectoriesError, match=told):
        read_trajectories(path)


def test_files_for_the_other_reader_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTrajectoriesError, match="No such file"):
        read_trajectories(tmp_path / "missing.json")
    with pytest.raises(UnreadableTrajectoriesError, match="has the layout tau_bench"):
        read_inspect_log(write_tau_bench(tmp_path / "a.json", []))
    log = write_inspect(tmp_path / "log.eval", build_sample([]))
    with pytest.raises(UnreadableTrajectoriesError, match="is an Inspect log"):
        read_tau_bench_results(log)
    log.write_bytes(log.read_bytes()[:200])
    with pytest.raises(UnreadableTrajectoriesError, match="cannot be read as an Inspect log"):
        read_trajectories(log)
    (tmp_path / "empty.json").write_text("[]")
    assert list(read_trajectories(tmp_path / "empty.json")) == []


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_a_log_that_the_real_evaluation_writes_is_read(log_format: str, tmp_path: Path) -> None:
    from inspect_ai import eval as run_evaluation
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.tool import ToolCall as InspectCall
    from inspect_evals.tau2.tau2 import tau2_retail

    def speak(text: str, *calls: ToolCall) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", text)
        # Without usage the mock model fetches a tokenizer.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        output.choices[0].message.tool_calls = [
            InspectCall(id=f"c{i}", function=call.name, arguments=dict(call.arguments)) for i, call in enumerate(calls)
        ] or None
        return output

    missing = ORDER.model_copy(update={"arguments": {"order_id": "#W0"}})
    agent = [speak("", FIND), speak("", ORDER, missing), speak("", *TASKS["0"].actions[2:]), speak("All done.")]
    customer = [speak("I am Yusuf."), speak("###STOP###")]
    (log,) = run_evaluation(
        tau2_retail(),
        model=get_model("mockllm/model", custom_outputs=agent),
        model_roles={"user": get_model("mockllm/model", custom_outputs=customer)},
        sample_id="0",
        log_dir=str(tmp_path),
        log_format=log_format,  # type: ignore[arg-type]
        display="none",
    )
    (trajectory,) = read_trajectories(log.location)
    assert trajectory.success is True
    assert trajectory.task_text == TASKS["0"].text
    assert trajectory.said == ("All done.",)
    assert [step.ok for step in trajectory.steps] == [True, True, False, True, True, True]
    assert len(trajectory.oddities) == 3  # every message numbers its calls anew
    assert reexecute(trajectory, load_environment()) == trajectory
    found = label_trajectory(trajectory, TOOLS)
    assert calls_of(found) == list(TASKS["0"].actions)
    assert load_environment().verdict(TASKS["0"], calls_of(found), "").success


def test_carrying_out_fills_in_what_the_source_left_out(environment: RetailEnvironment) -> None:
    bare = Trajectory(source="test", task_id="0", steps=(Step(call=FIND), Step(call=ORDER), Step(call=CANCEL)))
    filled = reexecute(bare, environment)
    assert filled.steps == carried_out(FIND, ORDER, CANCEL)
    assert filled.oddities == ()
    assert reexecute(filled, environment) == filled


def test_carrying_out_tells_where_the_record_disagrees(environment: RetailEnvironment) -> None:
    order = json.loads(carried_out(ORDER)[0].observation or "")
    steps = (
        Step(call=FIND, observation="someone_else_1"),
        Step(call=ORDER, observation=json.dumps({**dict(reversed(order.items())), "cancel_reason": None})),
        Step(call=WRITE, observation="Error: timeout"),
        Step(call=ToolCall(name="get_order_details", arguments={"order_id": "#W0"}), observation="Error: not found"),
        Step(call=CANCEL, fault="unreadable"),
    )
    filled = reexecute(Trajectory(source="test", task_id="0", steps=steps), environment)
    assert len(filled.oddities) == 2
    assert filled.oddities[0] == (
        "step 1 (find_user_id_by_name_zip): recorded 'someone_else_1', carried out 'yusuf_rossi_9620'"
    )
    assert filled.oddities[1].startswith("step 3 (exchange_delivered_order_items): recorded refused: 'Error: timeout'")
    assert [step.observation for step in filled.steps] == [step.observation for step in steps]
    assert [step.ok for step in filled.steps] == [True, True, False, False, None]
    assert reexecute(filled, environment) == filled
