# SPDX-License-Identifier: Apache-2.0
"""A real kubelet with cgroup v1 and a containerd without NRI: all that its pods go through."""
# lab shapes: bookworm-v1
# lab timeout: 2400
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_steps
from lab.kata import Cell

# It was not seen to settle: where the daemon has no NRI it learns of each crash from Kata's files, and the emulated node crashes again meanwhile.
print("left out: a container that crashes again and again")
kubelet_steps.run(tuple(step for step in kubelet_steps.ALL if step is not kubelet_steps.crash_loop), Cell(driver="cgroupfs"))
