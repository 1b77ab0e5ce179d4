// Calls and answers as ttrpc wraps them (containerd/ttrpc, request.proto), for both ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ka::guest {

/// The codes of google.rpc.Code that we give.
enum class Status : std::uint32_t {
  kOk = 0,
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
};

struct Call {
  std::string_view service;
  std::string_view method;
  std::string_view payload;
};

struct Answer {
  std::uint32_t status = 0;  ///< 0: good
  std::string_view message;  ///< for people, where it is not
  std::string_view payload;
};

/// Views into `data`; absent when it makes no sense.
std::optional<Call> read_call(std::string_view data);
std::optional<Answer> read_answer(std::string_view data);

/// Whole frames.
std::string write_call(std::uint32_t stream, const Call& call);
std::string write_answer(std::uint32_t stream, const Answer& answer);

}  // namespace ka::guest
