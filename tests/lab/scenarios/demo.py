# SPDX-License-Identifier: Apache-2.0
"""scripts/demo on this node: what it shows is what the lab shows."""
# lab shapes: smt8
# lab timeout: 900
# lab core: no

import os

os.environ["KATA_AFFINITY_VM_PATIENCE"] = "90"
os.environ["KATA_AFFINITY_VM_WORDS"] = "quiet mitigations=off nokaslr"  # each word on the console is an exit to the node
os.execv("/lab/scripts/demo", ["/lab/scripts/demo", "--programs", "/lab/bin"])
