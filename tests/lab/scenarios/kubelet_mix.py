# SPDX-License-Identifier: Apache-2.0
"""A real kubelet and a random mix: pods come, change and go, while the daemon, containerd and kubelet are killed, restarted and replaced by other builds at any moment."""
# lab shapes: smt8
# lab timeout: 1800
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

import json
import time
from pathlib import Path

from lab import check, kubelet_mix, kubelet_steps

GIVEN = Path("/lab/mix.json")  # for an hour of it, or to repeat a seed: `node run kubelet_mix --with DIR`

settings = {"seconds": 600, "seed": time.time_ns() % 100000} | (json.loads(GIVEN.read_text()) if GIVEN.exists() else {})
check.step(f"{settings['seconds']} s of seed {settings['seed']}")
kubelet_steps.run(kubelet_mix.steps(settings["seconds"], settings["seed"], with_builds=True))
