// SPDX-License-Identifier: Apache-2.0
// Messages about events: the event stream (GET /v1/events, `kata-affinityctl events`) and the log.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/ledger/start_gate.hpp"

namespace ka::messages {

/// The end of a pin whose time is up, which no source reported.
bool is_expiry(const policy::ledger::Event& event);

/// What a source reported, as the ledger has it now, and which source it was. The ledger has
/// applied the event, and it was news.
std::string event_text(const policy::ledger::Event& event, const policy::ledger::Ledger& ledger);

/// "nri, kubelet".
std::string names_of(const std::set<policy::ledger::Source>& sources);

/// "3 threads had left their planned CPUs"; noun: what one of them is called.
std::string drift_text(int count, const std::string& noun);

/// "another program had undone the partition of CPUs 2-3: it was made again".
std::string partition_drift_text(const policy::CpuSet& cpus, int times);

/// What has to come before threads get more CPUs than they have: "no thread gets more CPUs yet:
/// waiting for nri". Empty where nothing has to.
std::string waiting_text(const policy::ledger::StartGate& gate);

/// Which sources did not report within `limit` of the daemon's start.
std::string silent_text(const policy::ledger::StartGate& gate, std::chrono::seconds limit);

}  // namespace ka::messages
