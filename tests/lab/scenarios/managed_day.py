# SPDX-License-Identifier: Apache-2.0
"""Managed mode with containerd's NRI: a day of a hundred random events, among them kills and restarts of the daemon and of containerd."""
# lab shapes: smt8
# lab timeout: 1800

import json
import random
import time
from pathlib import Path

from lab import check, managed_day

GIVEN = Path("/lab/day.json")  # for a longer one, or to repeat a seed: `node run managed_day --with DIR`

settings = {"events": 100, "seed": time.time_ns() % 100000} | (json.loads(GIVEN.read_text()) if GIVEN.exists() else {})
check.step(f"{settings['events']} events of seed {settings['seed']}")
chance = random.Random(settings["seed"])
managed_day.run((chance.choice(managed_day.KINDS) for _ in range(settings["events"])), settings["seed"])
