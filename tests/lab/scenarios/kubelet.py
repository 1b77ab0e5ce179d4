# SPDX-License-Identifier: Apache-2.0
"""A real kubelet with the static CPU manager: static pods, runc and VM, come and go, and an independent reader says where each thread may run."""
# lab shapes: smt8
# lab timeout: 600
# lab core: yes
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_steps

kubelet_steps.run(kubelet_steps.MAIN)
