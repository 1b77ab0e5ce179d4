// SPDX-License-Identifier: Apache-2.0
// The helper's own word on which threads it may move, whoever requests it.
#pragma once

#include <filesystem>
#include <utility>

#include "base/process.hpp"
#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

class VmmThreads {
 public:
  explicit VmmThreads(std::filesystem::path proc) : proc_(std::move(proc)) {}

  const base::ProcFs& proc() const { return proc_; }

  /// kGone: that thread has ended. Any other error: it cannot be seen.
  base::Result<void> check_identity(const policy::ThreadKey& thread) const;
  /// The same; kConflict: it is neither a thread of a known VMM nor a vCPU of one in Kata's shim.
  base::Result<void> check(const policy::ThreadKey& thread) const;

 private:
  base::Result<base::ThreadStat> read(const policy::ThreadKey& thread) const;

  base::ProcFs proc_;
};

}  // namespace ka::helper
