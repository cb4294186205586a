"""Every test runs without network, without keys, and with the same random draws."""

from __future__ import annotations

import os

from hypothesis import settings

for name in ("WANDB_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN"):
    os.environ.pop(name, None)
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", WANDB_MODE="offline", WANDB_SILENT="true")

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")
