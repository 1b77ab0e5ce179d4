# SPDX-License-Identifier: Apache-2.0
"""What scenarios need that is no part of the project."""

from nodelab import chart_kit, kata, peers
from nodelab.scenarios import Scenario


def why_not(scenario: Scenario) -> str:
    """Why `scenario` cannot run here; empty where it can."""
    return peers.why_not(scenario.peers) or (chart_kit.why_not() if scenario.chart else "") or (kata.why_not() if scenario.kata else "")
