# SPDX-License-Identifier: Apache-2.0
"""A real kubelet, and in the middle of each step the daemon is killed and started again."""
# lab shapes: smt8
# lab timeout: 1800
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_steps

KILLED = [kubelet_steps.killed_within(step) for step in kubelet_steps.ALL if step is not kubelet_steps.daemon_restarts]
kubelet_steps.run(tuple(KILLED))
