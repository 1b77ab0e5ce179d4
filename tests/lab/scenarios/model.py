# SPDX-License-Identifier: Apache-2.0
"""The model of a node on a real kernel: each of its VMMs is a process, and the kernel has to give its threads the masks that the
model expects, through cpusets, CPUs that go offline, and masks that others set."""
# lab shapes: smt8 bookworm
# lab timeout: 1500
# lab alone: yes
# lab core: no

import os
import subprocess
import time
from pathlib import Path

from lab import check

STEPS = 5000
CGROUP = "/sys/fs/cgroup/model"


def main() -> None:
    check.step(f"{STEPS} steps of the model, from a seed of now")
    environment = {
        **os.environ,
        "TMPDIR": "/dev/shm",
        "KATA_AFFINITY_MODEL_CGROUP": CGROUP,
        "KATA_AFFINITY_MODEL_STEPS": str(STEPS),
        "KATA_AFFINITY_MODEL_SEED": str(int(time.time())),
    }
    done = subprocess.run(["test_model"], env=environment, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, flush=True)
    check.equal("exit status of the model test", done.returncode, 0)
    check.true("its CPUs are all online again", Path("/sys/devices/system/cpu/online").read_text().strip() == "0-7")


main()
