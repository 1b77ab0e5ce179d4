// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/cri/runtime.hpp"

#include <fcntl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>
#include <utility>

#include "base/grpc/call.hpp"
#include "base/text.hpp"
#include "base/unix_socket.hpp"

namespace ka::cri {
namespace {

using base::ErrorCode;
using base::Result;

constexpr const char* kService = "/runtime.v1.";
constexpr const char* kListImages = "ImageService/ListImages";

/// google.rpc.Code's NOT_FOUND.
constexpr auto kNotFound = static_cast<rpc::Code>(5);

ErrorCode code_of(const rpc::Response& response) {
  return response.code == kNotFound ? ErrorCode::kGone : ErrorCode::kConflict;
}

base::Error error_of(const Result<rpc::Response>& response) {
  if (response) return {code_of(*response), response->message, 0};
  const bool is_late = response.error().code == ErrorCode::kUnavailable;
  return {is_late ? ErrorCode::kConflict : response.error().code, response.error().message, 0};
}

using Answer = std::optional<Result<rpc::Response>>;

/// Ends the wait for an answer once a descriptor can be read from.
class Interrupt {
 public:
  Interrupt(boost::asio::io_context& io, int descriptor, Answer& answer) : descriptor_(io) {
    if (descriptor < 0) return;
    const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return;
    descriptor_.assign(copy);
    descriptor_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read, [&answer](boost::system::error_code) {
          answer.emplace(
              base::fail(ErrorCode::kUnavailable, base::reason_of(base::Waited::kInterrupted)));
        });
  }

 private:
  boost::asio::posix::stream_descriptor descriptor_;
};

}  // namespace

Runtime::Runtime(std::filesystem::path socket, const base::Clock& clock,
                 std::function<base::WaitLimit()> wait_limit)
    : socket_(std::move(socket)), clock_(clock), wait_limit_(std::move(wait_limit)) {}

Result<std::string> Runtime::call(const std::string& method, std::string message) const {
  auto connected = base::connect_unix(socket_);
  if (!connected) return unexpected(std::move(connected.error()));
  const base::WaitLimit wait_limit = wait_limit_();
  boost::asio::io_context io;
  Answer response;
  const Interrupt interrupt(io, wait_limit.interrupt, response);
  const grpc::Call call(io, clock_, std::move(*connected), {kService + method, std::move(message)},
                        wait_limit.remaining(), [&response](Result<rpc::Response> ended) {
                          response.emplace(std::move(ended));
                        });
  while (!response && io.run_one() > 0) {
  }
  if (!response) return base::fail(ErrorCode::kConflict, socket_.native() + ": no response");
  if (*response && (*response)->code == rpc::Code::kOk) return std::move((*response)->payload);
  return unexpected(base::error_in(socket_.native() + ": " + method, error_of(*response)));
}

template <typename Parse>
auto Runtime::query(const std::string& method, std::string message, Parse parse) const
    -> decltype(parse(std::string_view())) {
  const auto answer = call(method, std::move(message));
  if (!answer) return unexpected(answer.error());
  auto parsed = parse(*answer);
  if (!parsed) {
    return unexpected(base::error_in(socket_.native() + ": " + method, parsed.error()));
  }
  return parsed;
}

Result<Version> Runtime::version() const {
  return query("RuntimeService/Version", {}, parse_version);
}

Result<Settings> Runtime::settings() const {
  return query("RuntimeService/Status", encode_status(), parse_settings);
}

Result<std::vector<std::string>> Runtime::images() const {
  return query(kListImages, {}, parse_images);
}

Result<std::vector<Pod>> Runtime::pods(const Labels& labels) const {
  return query("RuntimeService/ListPodSandbox", encode_list_pods(labels), parse_pods);
}

Result<std::vector<Container>> Runtime::containers() const {
  return query("RuntimeService/ListContainers", {}, parse_containers);
}

Result<Resources> Runtime::resources_of(const std::string& container) const {
  return query("RuntimeService/ContainerStatus", encode_container_status(container),
               parse_container_resources);
}

Result<std::string> Runtime::run_pod(const PodConfig& pod, const std::string& handler) const {
  return query("RuntimeService/RunPodSandbox", encode_run_pod(pod, handler), parse_id);
}

Result<std::string> Runtime::create_container(const std::string& pod_id,
                                              const ContainerConfig& container,
                                              const PodConfig& pod) const {
  return query("RuntimeService/CreateContainer", encode_create_container(pod_id, container, pod),
               parse_id);
}

Result<void> Runtime::start_container(const std::string& id) const {
  const auto answer = call("RuntimeService/StartContainer", encode_id(id));
  if (!answer) return unexpected(answer.error());
  return {};
}

Result<std::string> Runtime::exec(const std::string& container,
                                  const std::vector<std::string>& words) const {
  const std::string method = "RuntimeService/ExecSync";
  const auto limit = std::chrono::ceil<std::chrono::seconds>(wait_limit_().remaining());
  auto ended = query(method, encode_exec(container, words, limit), parse_ended);
  if (!ended) return unexpected(ended.error());
  if (ended->status == 0) return std::move(ended->output);
  return base::fail(ErrorCode::kConflict, socket_.native() + ": " + method + ": " + words.front() +
                                              ": exit status " + std::to_string(ended->status) +
                                              ": " + base::printable(ended->errors));
}

Result<void> Runtime::remove_pod(const std::string& id) const {
  for (const char* method : {"RuntimeService/StopPodSandbox", "RuntimeService/RemovePodSandbox"}) {
    const auto answer = call(method, encode_id(id));
    if (!answer && !is_gone(answer)) return unexpected(answer.error());
  }
  return {};
}

}  // namespace ka::cri
