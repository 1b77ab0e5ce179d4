// SPDX-License-Identifier: Apache-2.0
// Observes what passes between containerd and a shim: the calls that change what a
// container may use. Bytes go in, in pieces of any size; nothing is held up, and what cannot be
// read is passed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/ttrpc/frame.hpp"

namespace ka::proxy {

enum class Verb { kCreate, kStart, kUpdate, kDelete };

/// A call about a container itself, not about a process that was executed in it.
struct Call {
  Verb verb = Verb::kCreate;
  std::string container;
  std::string bundle;     ///< of kCreate: the folder with its config.json
  std::string resources;  ///< of kUpdate: JSON of the OCI spec's LinuxResources

  bool operator==(const Call&) const = default;
};

struct Response {
  bool good = false;
  int pid = 0;  ///< of kCreate and kStart: the VMM's, with Kata

  bool operator==(const Response&) const = default;
};

/// One connection.
class Observer {
 public:
  struct Events {
    std::function<void(const Call&)> on_request;
    std::function<void(const Call&, const Response&)> on_response;
  };

  explicit Observer(Events events);

  // Short messages are only recorded: their receiver must not wait for us.
  void from_containerd(std::string_view bytes);
  void from_shim(std::string_view bytes);
  /// Decodes what was recorded, when the relay is idle. Requests that arrived since the last time
  /// are reported before responses.
  void digest();

 private:
  bool append(std::string& buffer, std::string_view bytes);
  void read_requests(std::string_view bytes);
  void read_responses(std::string_view bytes);
  void request(const ttrpc::Frame& frame);
  void response(const ttrpc::Frame& frame);

  Events events_;
  std::string request_bytes_;
  std::string response_bytes_;
  ttrpc::Decoder requests_;
  ttrpc::Decoder responses_;
  std::map<std::uint32_t, Call> open_;  ///< by stream
};

}  // namespace ka::proxy
