// SPDX-License-Identifier: Apache-2.0
// How the writes of one sandbox's resource classes go: what the kernel refuses for good, and how
// often what other programs change is written again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "affinity/line/answer_limit.hpp"
#include "affinity/line/nice.hpp"
#include "base/result.hpp"

namespace ka::line {

/// What came of a round of writes.
struct ClassWrites {
  int done = 0;
  int failed = 0;                    ///< for now
  std::vector<std::string> refused;  ///< the reason, for each that will never be
  std::vector<int> reverted;         ///< threads whose number was another one's by then: undone
  std::vector<NiceWrite> unsettled;  ///< of which it could not be seen whom they reached
};

class ClassAttempts {
 public:
  using Time = AnswerLimit::Time;

  /// A round of writes begins, or ends. What is not on disk is not written: `is_recorded`.
  void begin(Time now, bool is_recorded);
  void end(Time now);
  /// A round in which all is given back begins.
  void begin() { unanswered_ = false; }

  /// Why the kernel will never let it be written; empty: it may.
  std::string refusal_of(const std::string& name) const;
  /// `is_repeated`: it was written before, and another program has changed it since. Such a one is
  /// written ever more rarely; false, and the problem, where it is not time.
  bool may_write(const std::string& name, bool is_repeated, std::string& problem);
  void fail(const std::string& name, std::string& problem, const base::Error& error,
            ClassWrites& writes);
  /// Of what is given back. True: nothing of ours is there any more. What the kernel refuses is
  /// reported once, and tried again.
  bool is_done(const base::Result<void>& done, const std::string& name, ClassWrites& writes);
  /// Something could be written and is not: it is tried again when it is time.
  void put_off() { unanswered_ = true; }
  bool is_due(Time now) const { return unanswered_ && answer_limit_.may_answer(now); }
  /// What the kernel refused is tried again.
  void retry_refused() { refused_.clear(); }

 private:
  std::map<std::string, std::string> refused_;  ///< why, by what was to be written
  std::set<std::string> kept_;                  ///< what the kernel refused to have given back
  bool unanswered_ = false;
  bool in_time_ = true, answers_ = false, is_recorded_ = true;  ///< of a round of writes
  AnswerLimit answer_limit_;
};

}  // namespace ka::line
