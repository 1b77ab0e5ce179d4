// SPDX-License-Identifier: Apache-2.0
// Writes to threads, which the kernel knows by their number alone: the identity is checked before
// and after (I9), and what reached another thread is undone.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "affinity/host/undo.hpp"
#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

template <typename Value>
class ThreadWriter {
 public:
  struct Access {
    /// kGone: that thread has ended. Any other error: it cannot be seen.
    std::function<base::Result<void>(const policy::ThreadKey&)> check;
    std::function<base::Result<void>(const policy::ThreadKey&, const Value&)> set;
    /// Of a thread that has ended.
    std::function<host::Undone(const policy::ThreadKey&, const Value&)> undo;
  };

  explicit ThreadWriter(Access access) : access_(std::move(access)) {}

  /// kGone: the thread has ended, and nothing of the write stays.
  base::Result<void> write(const policy::ThreadKey& thread, const Value& value) {
    check_unsettled();
    if (auto checked = access_.check(thread); !checked) return checked;
    if (auto done = access_.set(thread, value); !done) return done;
    auto checked = access_.check(thread);
    if (checked) return checked;
    unsettled_.insert_or_assign(thread, value);
    check_unsettled();
    return checked;
  }

  /// Checks the writes again of which it could not be seen whom they reached. write() does, too.
  void check_unsettled() {
    std::erase_if(unsettled_, [this](const auto& entry) {
      const auto checked = access_.check(entry.first);
      if (checked || !is_gone(checked)) return checked.has_value();
      return access_.undo(entry.first, entry.second) != host::Undone::kUnseen;
    });
  }
  bool has_unsettled() const { return !unsettled_.empty(); }

 private:
  Access access_;
  std::map<policy::ThreadKey, Value> unsettled_;  ///< what was written
};

}  // namespace ka::helper
