// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/state_text.hpp"

#include <algorithm>

#include "guest-agent/protocol/limits.hpp"

namespace ka::agent {
namespace {

/// Steps over JSON, piece by piece. Every step returns whether the piece was well-formed.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  /// Skips blanks; whether `c` comes next, and if so takes it.
  bool accept(char c) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// A string, without its quotes.
  bool string(std::string_view& raw) {
    if (!accept('"')) return false;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        raw = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }

  /// Any value.
  bool skip(int depth = 0) {
    constexpr int kDeepestValue = 64;
    if (depth > kDeepestValue) return false;
    std::string_view ignored;
    if (accept('{')) return skip_list('}', true, depth);
    if (accept('[')) return skip_list(']', false, depth);
    // Blanks are gone by now.
    if (rest_.starts_with('"')) return string(ignored);
    const std::size_t end = rest_.find_first_of(",]} \t\r\n");
    if (end == 0 || end == std::string_view::npos) return false;
    rest_.remove_prefix(end);
    return true;
  }

 private:
  bool skip_list(char end, bool has_keys, int depth) {
    if (accept(end)) return true;
    std::string_view key;
    do {
      if (has_keys && !(string(key) && accept(':'))) return false;
      if (!skip(depth + 1)) return false;
    } while (accept(','));
    return accept(end);
  }

  std::string_view rest_;
};

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= guest::kMaxId && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

}  // namespace

std::optional<std::string> id_in_state(std::string_view text) {
  Scanner scanner(text);
  std::string_view key;
  std::string_view id;
  if (!scanner.accept('{') || scanner.accept('}')) return std::nullopt;
  do {
    if (!scanner.string(key) || !scanner.accept(':')) return std::nullopt;
    if (key == "id" ? !scanner.string(id) : !scanner.skip()) return std::nullopt;
  } while (scanner.accept(','));
  if (!scanner.accept('}') || !is_id(id)) return std::nullopt;
  return std::string(id);
}

}  // namespace ka::agent
