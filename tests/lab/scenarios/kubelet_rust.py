# SPDX-License-Identifier: Apache-2.0
"""A real kubelet whose VM pods run under the stand-in for runtime-rs, which sizes a VM once, by the quotas of its pod."""
# lab shapes: smt8
# lab timeout: 1500
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_steps
from lab.kata import Cell

# Without them a pod that owns CPUs asks for none, and its VM has one vCPU.
QUOTAS = {"featureGates": {"DisableCPUQuotaWithExclusiveCPUs": False}}
kubelet_steps.run(kubelet_steps.SHORT, Cell(runtime="rust", kubelet=QUOTAS))
