# SPDX-License-Identifier: Apache-2.0
"""As first_touch, with the real Kata in place of its stand-in."""
# lab shapes: smt8
# lab timeout: 3000
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback
# lab kata: yes

from lab import first_touch

first_touch.run()
