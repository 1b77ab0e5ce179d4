// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/class_attempts.hpp"

namespace ka::line {
namespace {

bool is_final_for_class(const base::Error& error) {
  return error.code != base::ErrorCode::kTransient && !is_gone(error);
}

}  // namespace

void ClassAttempts::begin(Time now, bool is_recorded) {
  is_recorded_ = is_recorded;
  in_time_ = answer_limit_.may_answer(now);
  answers_ = unanswered_ = false;
}

void ClassAttempts::end(Time now) {
  if (answers_) answer_limit_.answered(now);
}

std::string ClassAttempts::refusal_of(const std::string& name) const {
  const auto refused = refused_.find(name);
  return refused == refused_.end() ? std::string() : refused->second;
}

bool ClassAttempts::may_write(const std::string& name, bool is_repeated, std::string& problem) {
  if (refused_.contains(name)) return false;
  if (!is_recorded_) {
    problem = "what was there before cannot be recorded";
    unanswered_ = true;
    return false;
  }
  if (!is_repeated) return true;
  answers_ |= in_time_;
  if (in_time_) return true;
  problem = "another program keeps changing it; reverted with back-off";
  unanswered_ = true;
  return false;
}

void ClassAttempts::fail(const std::string& name, std::string& problem, const base::Error& error,
                         ClassWrites& writes) {
  problem = error.message;
  if (!is_final_for_class(error)) {
    unanswered_ = true;
    writes.failed += is_gone(error) ? 0 : 1;
    return;
  }
  refused_[name] = error.message;
  writes.refused.push_back(name + " cannot be set: " + error.message);
}

bool ClassAttempts::is_done(const base::Result<void>& done, const std::string& name,
                            ClassWrites& writes) {
  if (done) ++writes.done;
  if (done || is_gone(done)) {
    kept_.erase(name);
    return true;
  }
  unanswered_ = true;
  if (!is_final_for_class(done.error())) {
    ++writes.failed;
  } else if (kept_.insert(name).second) {
    writes.refused.push_back(name + " cannot be restored: " + done.error().message);
  }
  return false;
}

}  // namespace ka::line
