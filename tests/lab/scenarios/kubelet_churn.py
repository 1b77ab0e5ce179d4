# SPDX-License-Identifier: Apache-2.0
"""A real kubelet and two minutes of what kubelet_mix does, always the same: the kernel's scheduler says who ran on CPUs of other pods, and for how long."""
# lab shapes: smt8
# lab timeout: 900
# lab core: yes
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import kubelet_mix, kubelet_steps

SECONDS = 120
# With it kubelet is restarted while pods go. While one comes, a busy machine's containerd may be left with half of a sandbox for minutes.
SEED = 59

kubelet_steps.run(kubelet_mix.steps(SECONDS, SEED))
