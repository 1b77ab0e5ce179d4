// SPDX-License-Identifier: Apache-2.0
#include "base/log/output.hpp"

#include <string>

namespace ka::log {

Output::Output(int fd, const char* journal_stream, const std::filesystem::path& journal)
    : stream_(fd) {
  if (Journal::is_behind(fd, journal_stream)) journal_.emplace(journal);
}

void Output::write(Level level, std::string_view text, Fields fields) {
  if (!report_loss() || !put(level, text, fields)) ++lost_;
}

bool Output::put(Level level, std::string_view text, Fields fields) {
  return (journal_ && journal_->send(level, text, fields)) ||
         stream_.put(to_prefixed_line(level, text, fields));
}

bool Output::report_loss() {
  if (lost_ == 0) return true;
  const std::string text = lost_ == 1 ? "1 line of the log was lost"
                                      : std::to_string(lost_) + " lines of the log were lost";
  if (!put(Level::kWarning, text, {})) return false;
  lost_ = 0;
  return true;
}

}  // namespace ka::log
