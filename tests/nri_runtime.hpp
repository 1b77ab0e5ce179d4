// SPDX-License-Identifier: Apache-2.0
// A container runtime's end of NRI as a blocking client: takes the plugin in, then asks, one
// question after the other.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/rpc/message.hpp"
#include "base/ttrpc/frame.hpp"
#include "base/unix_socket.hpp"
#include "shim-ext/nri/mux.hpp"
#include "shim-ext/proto/nri.pb.h"

namespace ka::tests {

/// A node of `pods` pods without VMs that all want CPU 0, as a runtime tells it: pods first, then
/// containers, each with labels as real ones have (bytes that we do not read), in messages of
/// 3 MiB.
inline std::vector<proto::nri::SynchronizeRequest> many_pods(int pods) {
  const std::string labels = std::string("\x2a\xdc\x0b") + std::string(1500, 'x');
  constexpr std::size_t kInOne = (std::size_t{3} << 20) / 1600;
  std::vector<proto::nri::SynchronizeRequest> parts;
  std::size_t count = 0;
  const auto part = [&]() -> proto::nri::SynchronizeRequest& {
    if (count++ % kInOne == 0) parts.emplace_back();
    return parts.back();
  };
  for (int i = 0; i < pods; ++i) {
    auto* pod = part().add_pods();
    pod->set_id("pod" + std::to_string(i));
    pod->set_uid("uid-" + std::to_string(i));
    pod->set_name("pod" + std::to_string(i));
    pod->set_namespace_("many");
    pod->set_pid(static_cast<std::uint32_t>(::getpid()));
    pod->MergeFromString(labels);
  }
  for (int i = 0; i < pods; ++i) {
    auto* container = part().add_containers();
    container->set_id("container" + std::to_string(i));
    container->set_pod_sandbox_id("pod" + std::to_string(i));
    container->set_name("app");
    auto* cpu = container->mutable_linux()->mutable_resources()->mutable_cpu();
    cpu->set_cpus("0");
    cpu->mutable_quota()->set_value(100000);
    cpu->mutable_period()->set_value(100000);
    container->MergeFromString(labels);
  }
  return parts;
}

/// Ends the program with a message where something goes wrong.
class NriRuntime {
 public:
  explicit NriRuntime(const std::string& path) {
    auto listener = base::listen_unix(path);
    if (!listener) give_up("cannot listen");
    ::fcntl(listener->get(), F_SETFL, 0);  // blocking
    listener_ = std::move(*listener);
  }

  /// Waits for the plugin; `all` is what there is, in parts where it is more than one message
  /// holds. Seconds until the part was answered that took longest.
  double accept(std::vector<proto::nri::SynchronizeRequest> all = {{}}) {
    plugin_ = ttrpc::Decoder();
    runtime_ = ttrpc::Decoder();
    demux_ = nri::Demux();
    stream_ = 1;
    fd_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto registration = next(nri::kRuntimeLane);
    put(nri::kRuntimeLane, rpc::encode_response(registration.header.stream, {}));
    proto::nri::ConfigureRequest configure;
    configure.set_runtime_name("containerd");
    configure.set_runtime_version("v2.3.0");
    configure.set_nri_version(nri_version);
    call("Configure", configure);
    double longest = 0;
    for (auto& part : all) {
      part.set_more(&part != &all.back());
      longest = std::max(longest, call("Synchronize", part));
    }
    return longest / 1e6;
  }

  /// As a runtime that is stopped.
  void hang_up() { fd_.reset(); }

  /// Microseconds until the answer is there.
  double call(const std::string& method, const google::protobuf::MessageLite& message) {
    using Clock = std::chrono::steady_clock;
    stream_ += 2;
    const auto frame = rpc::encode_request(
        stream_, {"nri.pkg.api.v1alpha1.Plugin", method, message.SerializeAsString(), {}, {}});
    const auto start = Clock::now();
    put(nri::kPluginLane, *frame);
    answer_ = rpc::decode_response(next(nri::kPluginLane).data).value_or(rpc::Response{});
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  }

  /// Waits for the plugin to ask for changes between our calls, and agrees.
  proto::nri::UpdateContainersRequest requested() {
    const auto frame = next(nri::kRuntimeLane);
    const auto request = rpc::decode_request(frame.data).value_or(rpc::Request{});
    proto::nri::UpdateContainersRequest message;
    if (request.method != "UpdateContainers" || !message.ParseFromString(request.payload)) {
      give_up("the plugin asks for something else");
    }
    put(nri::kRuntimeLane, rpc::encode_response(frame.header.stream, {}));
    return message;
  }

  std::string nri_version;  ///< said to the plugin; empty, as before 0.12: not said

  /// What the last question was answered with.
  const rpc::Response& answer() const { return answer_; }

 private:
  [[noreturn]] static void give_up(const char* what) {
    std::fprintf(stderr, "NRI's runtime: %s\n", what);
    std::exit(1);
  }

  void put(std::uint32_t lane, const std::string& frame) const {
    const std::string bytes = nri::mux(lane, frame);
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(bytes.size())) give_up("the plugin left");
  }

  ttrpc::Frame next(std::uint32_t lane) {
    for (;;) {
      auto& decoder = lane == nri::kPluginLane ? plugin_ : runtime_;
      if (auto frame = decoder.next()) return *frame;
      char bytes[65536];
      const ssize_t got = ::read(fd_.get(), bytes, sizeof bytes);
      if (got <= 0) give_up("the plugin left");
      demux_.feed({bytes, static_cast<std::size_t>(got)},
                  [this](std::uint32_t id, std::string_view payload) {
                    (id == nri::kPluginLane ? plugin_ : runtime_).feed(payload);
                  });
    }
  }

  base::Fd listener_;
  base::Fd fd_;
  std::uint32_t stream_ = 1;
  rpc::Response answer_;
  nri::Demux demux_;
  ttrpc::Decoder plugin_, runtime_;
};

}  // namespace ka::tests
