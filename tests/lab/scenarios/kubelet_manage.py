# SPDX-License-Identifier: Apache-2.0
"""A real kubelet with cgroup = "manage": nothing of a pod is left beside its dedicated vCPUs."""
# lab shapes: smt8
# lab timeout: 1500
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_steps
from lab.kata import Cell

kubelet_steps.run(kubelet_steps.SHORT, Cell(affinity={"cgroup": "manage"}))
