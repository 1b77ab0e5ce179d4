# SPDX-License-Identifier: Apache-2.0
"""A real kubelet with cgroup v1 and a containerd without NRI: all that its pods go through."""
# lab shapes: bookworm-v1
# lab timeout: 2400
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_steps
from lab.kata import Cell

# Without NRI the daemon learns of each crash from Kata's files, and the emulated node takes a while to show all that it changes.
slow = {kubelet_steps.crash_loop: kubelet_steps.crashing(30)}
kubelet_steps.run(tuple(slow.get(step, step) for step in kubelet_steps.ALL), Cell(driver="cgroupfs"))
