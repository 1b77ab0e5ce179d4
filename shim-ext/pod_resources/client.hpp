// SPDX-License-Identifier: Apache-2.0
// Queries kubelet once for its assignments: List, then GetAllocatableResources.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/grpc/call.hpp"
#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::pod_resources {

/// For each of the two responses.
inline constexpr std::chrono::milliseconds kAnswerTime{500};

class Client {
 public:
  /// Called once, from the loop; may destroy the client. kGone: nothing listens there; kTransient:
  /// kubelet limits its clients' rate (RESOURCE_EXHAUSTED, normal); kUnavailable, kInvalid: as
  /// grpc::Call has it, or kubelet refused.
  using Done = std::function<void(base::Result<policy::ledger::ResourcesSeen>)>;

  Client(boost::asio::io_context& io, const base::Clock& clock, std::filesystem::path socket,
         Done done);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// Nothing is called after that.
  ~Client() = default;

 private:
  using Parse = std::function<base::Result<void>(const std::string& message)>;

  void call(const std::string& method, const Parse& parse, std::function<void()> then);
  base::Result<void> read(const base::Result<rpc::Response>& response, const Parse& parse) const;
  void list();
  void query_allocatable();
  void end(base::Result<policy::ledger::ResourcesSeen> seen);

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  std::filesystem::path socket_;
  Done done_;
  rpc::Timer start_;
  policy::ledger::ResourcesSeen seen_;
  std::optional<grpc::Call> call_;
};

}  // namespace ka::pod_resources
