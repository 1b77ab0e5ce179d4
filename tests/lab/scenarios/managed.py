# SPDX-License-Identifier: Apache-2.0
"""Managed mode with containerd's NRI: runc and VM pods get their CPUs from the daemon, change class and size, and outlive restarts."""
# lab shapes: smt8
# lab timeout: 600
# lab core: yes

from lab import managed_day

managed_day.run(
    ("arrive_shared", "arrive", "arrive_vm", "arrive_sharer", "change", "kill", "resize", "leave", "runtime", "change", "arrive", "restart"),
    seed=29,
)
