// SPDX-License-Identifier: Apache-2.0
// The books as the ledger's events, and as sentences.
#pragma once

#include <string>

#include "policy/ledger/event.hpp"
#include "policy/managed/books.hpp"

namespace ka::managed {

/// Who owns which CPU, and what is left for all.
policy::ledger::KubeletSeen owners_of(const policy::managed::Books& books);

/// "exclusive, CPUs 4-5", "shared pool: its CPU limit is not a number of whole CPUs".
std::string sentence(const policy::managed::Entry& entry, const policy::CpuSet& cpus);

/// "its CPU limit is not a number of whole CPUs".
std::string sentence(const policy::managed::Problem& problem);

/// What an operator can do about it: "give it a limit of whole CPUs".
std::string remedy(const policy::managed::Problem& problem);

/// "container app of shop/cart".
std::string title(const policy::managed::Entry& entry);

}  // namespace ka::managed
