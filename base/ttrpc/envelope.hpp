// SPDX-License-Identifier: Apache-2.0
// ttrpc's requests and responses (containerd/ttrpc, request.proto; google.rpc.Status), for all
// users of the protocol: the daemon, the shim proxy, the guest's agent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ka::ttrpc {

/// The codes of google.rpc.Code that we send or distinguish.
enum class Code : std::int32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

struct Call {
  std::string_view service;
  std::string_view method;
  std::string_view payload;
  std::int64_t timeout_nano = 0;  ///< 0: for ever
  std::vector<std::pair<std::string_view, std::string_view>> metadata{};
};

struct Answer {
  Code code = Code::kOk;
  std::string_view message{};  ///< text, where `code` is not kOk
  std::string_view payload;
};

/// Views into `data`; absent if it is malformed.
std::optional<Call> read_call(std::string_view data);
std::optional<Answer> read_answer(std::string_view data);

/// Whole frames of any size: the caller checks kMaxData.
std::string write_call(std::uint32_t stream, const Call& call);
std::string write_answer(std::uint32_t stream, const Answer& answer);

}  // namespace ka::ttrpc
