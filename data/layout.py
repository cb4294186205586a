"""Lays the parts of a delegation out: paragraphs, lists, a memo, notes, questions, a time line, a telegram."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

from graphhandoff.data.problems import Step

Layout = Literal[
    "paragraphs", "block", "numbered", "bullets", "memo", "questions", "timeline", "telegram", "notes", "letters"
]
LAYOUTS: tuple[tuple[Layout, float], ...] = (
    ("paragraphs", 0.36),
    ("block", 0.1),
    ("numbered", 0.12),
    ("bullets", 0.1),
    ("memo", 0.09),
    ("questions", 0.05),
    ("timeline", 0.07),
    ("telegram", 0.04),
    ("notes", 0.04),
    ("letters", 0.03),
)

_HEADINGS = {  # headings in one place of their rows go together
    "who": (
        "Who",
        "Customer",
        "Whom it is about",
        "WHO",
        "Background",
        "The customer",
        "Caller",
        "Case",
        "Situation",
        "CUSTOMER",
        "Person",
        "About",
    ),
    "look": (
        "Look-ups",
        "To read",
        "First the records",
        "READ",
        "Reading",
        "The records",
        "Lookup",
        "Finding things",
        "Preparation",
        "RECORDS",
        "Where to look",
        "Before you act",
    ),
    "step": (
        "Write",
        "To do",
        "Change",
        "ACTION",
        "What to do",
        "Step",
        "Action",
        "The job",
        "Task",
        "JOB",
        "Wish",
        "Your part",
    ),
    "care": (
        "Caution",
        "Mind",
        "Notes",
        "CARE",
        "Careful",
        "Traps",
        "Watch out",
        "Limits",
        "Good to know",
        "NOTE",
        "Further",
        "Around it",
    ),
    "tell": (
        "To the customer",
        "Answer",
        "Tell",
        "REPLY",
        "What to say",
        "The answer",
        "Reply",
        "Closing message",
        "Feedback",
        "SAY",
        "Last message",
        "Then",
    ),
    "end": (
        "Remarks",
        "Last",
        "PS",
        "END",
        "Finally",
        "From me",
        "Sign-off",
        "End",
        "Rest",
        "CLOSE",
        "Otherwise",
        "That apart",
    ),
}
_QUESTIONS = {
    "who": (
        "Who is it?",
        "Whose case is this?",
        "What is it about?",
        "Who called?",
        "Whom do we serve?",
        "Who wants what?",
    ),
    "look": (
        "What is there to read?",
        "Where to look?",
        "Which records?",
        "What do I open?",
        "What must be known first?",
        "How do I find it all?",
    ),
    "step": (
        "What is to be done?",
        "And the change?",
        "What exactly?",
        "What else?",
        "What next?",
        "What is my part?",
        "And then?",
        "Which write?",
        "What does it take?",
    ),
    "care": (
        "What to watch?",
        "Any traps?",
        "Anything to be careful with?",
        "What could go wrong?",
        "What else is there to know?",
        "Where are the limits?",
    ),
    "tell": (
        "What does the customer hear?",
        "And the answer?",
        "What to say?",
        "How do I close?",
        "What is my last message?",
        "What goes back to the customer?",
    ),
    "end": ("Anything else?", "Is that all?", "And from you?", "What remains?", "Finished?"),
}
_TIMES = (
    (
        "First",
        "Then",
        "After that",
        "Next",
        "At this point",
        "Following that",
        "Thereupon",
        "Later",
        "Towards the end",
        "Finally",
    ),
    ("To begin with", "Next", "Then", "Afterwards", "Further on", "Subsequently", "Near the end", "Last of all"),
    ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th", "11th", "12th"),
    ("Now", "Straight after", "Once that is through", "As soon as that is done", "In due course", "In the end"),
    ("Before anything else", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "After all that"),
    ("At the start", "From there", "Having done so", "With that behind you", "Still later", "At the close"),
)


class Part(NamedTuple):
    """Sentences that belong together, what they are for, and the steps that they tell."""

    role: Literal["who", "look", "step", "care", "tell", "end"]
    sentences: list[str]
    steps: tuple[Step, ...] = ()


def arrange(parts: Sequence[Part], layout: Layout, rng: random.Random) -> str:
    """Lay parts out as one text; nothing is added but marks, headings and small joining words."""
    if layout == "block":
        return " ".join(sentence for part in parts for sentence in part.sentences) + "\n"
    if layout == "telegram":
        return "\n".join(sentence for part in parts for sentence in part.sentences) + "\n"
    if layout in ("bullets", "notes", "letters", "numbered"):
        return _as_list(parts, layout, rng)
    blocks: list[str] = []
    style, gap = rng.randrange(12), "\n\n" if layout != "timeline" or rng.random() < 0.5 else "\n"
    used: set[str] = set()
    for i, part in enumerate(parts):
        body = " ".join(part.sentences)
        if layout == "memo":
            head = _fresh(_HEADINGS[part.role], used, style)
            blocks.append(f"{head}: {body}" if style % 5 < 3 else f"{head}\n{body}")
        elif layout == "questions":
            blocks.append(f"{_fresh(_QUESTIONS[part.role], used, rng.randrange(6))} {body}")
        elif layout == "timeline" and part.role != "who":
            times = _TIMES[style % len(_TIMES)]
            blocks.append(f"{times[min(max(i - 1, 0), len(times) - 1)]}: {body}")
        else:
            blocks.append(body)
    if layout == "paragraphs" and rng.random() < 0.4:
        blocks = _merge(blocks, rng)
    return gap.join(blocks) + "\n"


def _as_list(parts: Sequence[Part], layout: Layout, rng: random.Random) -> str:
    fine = layout == "notes" or rng.random() < 0.4  # one mark a sentence, or one a part
    mark = rng.choice(("- ", "* ", "• ", "– "))
    lines: list[str] = []
    number = 0
    for part in parts:
        if part.role in ("who", "end") and layout != "notes":
            lines.append(
                ("" if part.role == "who" else "\n") + " ".join(part.sentences) + ("\n" if part.role == "who" else "")
            )
            continue
        for text in part.sentences if fine else [" ".join(part.sentences)]:
            number += 1
            if layout == "numbered":
                lines.append(f"{number}. {text}")
            elif layout == "letters" and number <= 26:
                lines.append(f"{'abcdefghijklmnopqrstuvwxyz'[number - 1]}) {text}")
            else:
                lines.append(f"{mark}{text}")
    return "\n".join(lines).strip("\n") + "\n"


def _fresh(options: Sequence[str], used: set[str], start: int) -> str:
    for k in range(len(options)):
        option = options[(start + k) % len(options)]
        if option not in used:
            used.add(option)
            return option
    return options[start % len(options)]


def _merge(blocks: Sequence[str], rng: random.Random) -> list[str]:
    merged: list[str] = []
    for block in blocks:
        if merged and rng.random() < 0.35:
            merged[-1] = f"{merged[-1]} {block}"
        else:
            merged.append(block)
    return merged
