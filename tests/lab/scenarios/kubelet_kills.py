# SPDX-License-Identifier: Apache-2.0
"""A real kubelet, and at several instants of each step, as a seed has it, the daemon is killed and started again."""
# lab shapes: smt8
# lab timeout: 2400
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

import json
import random
import time
from pathlib import Path

from lab import check, kubelet_steps

GIVEN = Path("/lab/kills.json")  # to repeat a seed: `node run kubelet_kills --with DIR`

settings = {"seed": time.time_ns() % 100000} | (json.loads(GIVEN.read_text()) if GIVEN.exists() else {})
check.step(f"seed {settings['seed']}")
chance = random.Random(settings["seed"])
KILLED = [
    # The self-test asks the daemon, and says so where it is away: it is killed before it is asked.
    kubelet_steps.killed_within(step, [6.0] if step is kubelet_steps.self_test else kubelet_steps.kill_times(chance))
    for step in kubelet_steps.ALL
    if step is not kubelet_steps.daemon_restarts
]
kubelet_steps.run(KILLED)
