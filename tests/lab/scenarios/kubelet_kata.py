# SPDX-License-Identifier: Apache-2.0
"""A real kubelet with the real Kata in place of its stand-in, in one cell of the table in docs/tested.md: containers are asked in their guests, too."""
# lab shapes: smt8
# lab timeout: 2400
# lab alone: yes
# lab peers: kubelet cni-bridge cni-host-local cni-loopback
# lab kata: yes

import json
from pathlib import Path

from lab import kubelet_steps
from lab.kata import Cell

GIVEN = Path("/lab/cell.json")  # another cell: `node run kubelet_kata --with DIR`

cell = Cell(**(json.loads(GIVEN.read_text()) if GIVEN.exists() else {}))
kubelet_steps.run(kubelet_steps.LISTS[cell.steps], cell)
