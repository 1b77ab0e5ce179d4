# SPDX-License-Identifier: Apache-2.0
"""README's quick start by the letter, with the real Kata: its six commands, and the way back."""
# lab shapes: smt8 bookworm
# lab timeout: 1800
# lab packages: yes
# lab kata: yes

from lab import check
from lab.quick_start import a_kata_node, six_commands, undo

a_kata_node()
check.step("the six commands")
six_commands()
check.step("the way back")
undo()
