// SPDX-License-Identifier: Apache-2.0
// What an event becomes in the stream of happenings (GET /v1/events, `kata-affinityctl events`).
#pragma once

#include <string>

#include "affinity/engine/event_kind.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/start_gate.hpp"

namespace ka::engine {

/// What the event is called there.
EventKind happening_kind(const policy::ledger::EventBody& body);

/// The container that an event is about; empty where it is about none.
std::string happening_container(const policy::ledger::EventBody& body);

/// What the event told, and who told it, in words for people.
std::string happening_text(const policy::ledger::Event& event);

/// "3 threads no longer had the CPUs they were given"; what: what one of them is called.
std::string drift_text(int count, const std::string& what);

/// What has to come before threads get more CPUs than they have: "no thread gets more CPUs yet:
/// waiting for nri". Empty where nothing has to.
std::string waiting_text(const policy::ledger::StartGate& gate);

/// Which sources did not speak in time.
std::string silent_text(const policy::ledger::StartGate& gate);

}  // namespace ka::engine
