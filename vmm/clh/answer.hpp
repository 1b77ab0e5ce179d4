// SPDX-License-Identifier: Apache-2.0
// One HTTP answer as it comes in: bytes in, status and body out; the socket is somebody else's.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ka::clh {

inline constexpr std::size_t kMostHead = 16u << 10;  ///< bytes
inline constexpr std::size_t kMostBody = 1u << 20;   ///< bytes

class Answer {
 public:
  Answer();
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  Answer(Answer&&) noexcept;
  Answer& operator=(Answer&&) noexcept;
  ~Answer();

  /// True when the answer is whole; what comes behind it is not looked at. kInvalid: it is no HTTP,
  /// comes in chunks, or is longer than is read.
  base::Result<bool> feed(std::string_view bytes);

  /// Precondition of both: it is whole.
  int status() const;
  const std::string& body() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A question that asks for an answer and then the end of the connection.
std::string get_request(std::string_view target);

}  // namespace ka::clh
