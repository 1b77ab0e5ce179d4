# SPDX-License-Identifier: Apache-2.0
"""A real kubelet whose VM pods run behind the shim proxy, without NRI."""
# lab shapes: smt8
# lab timeout: 1500
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_steps
from lab.kata import Cell

kubelet_steps.run(kubelet_steps.SHORT, Cell(proxy=True))
