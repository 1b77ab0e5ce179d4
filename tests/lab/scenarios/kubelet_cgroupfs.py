# SPDX-License-Identifier: Apache-2.0
"""A real kubelet whose cgroups are made without systemd: all that its pods go through."""
# lab shapes: smt8
# lab timeout: 1500
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_steps
from lab.kata import Cell

kubelet_steps.run(kubelet_steps.ALL, Cell(driver="cgroupfs"))
