# SPDX-License-Identifier: Apache-2.0
"""A VM's memory is born on the node of its pod's CPUs: the share at its container's start, without the product and with it."""
# lab shapes: smt8
# lab timeout: 1500
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import first_touch

first_touch.run()
