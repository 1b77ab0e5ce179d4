// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/observer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/rpc/message.hpp"
#include "shim-ext/proto/task.pb.h"

namespace ka::proxy {
namespace {

namespace wire = proto::task;

// A Create with all its mounts and options, or an Update, has a few kilobytes.
constexpr std::size_t kLargestRead = std::size_t{64} << 10;
// A decoder keeps the room that it once needed, so it is fed in small pieces.
constexpr std::size_t kPiece = 4096;
// More than this is not left for a quiet moment.
constexpr std::size_t kMostBuffered = std::size_t{16} << 10;
// containerd asks one such question at a time for a container; those it gave up stay unanswered.
constexpr std::size_t kMostOpen = 256;

constexpr std::array<std::pair<std::string_view, Verb>, 4> kMethods{{
    {"Create", Verb::kCreate},
    {"Start", Verb::kStart},
    {"Update", Verb::kUpdate},
    {"Delete", Verb::kDelete},
}};

std::optional<Verb> verb_of(const rpc::Request& request) {
  if (!request.service.starts_with("containerd.task.")) return std::nullopt;
  for (const auto& [method, verb] : kMethods) {
    if (request.method == method) return verb;
  }
  return std::nullopt;
}

template <typename Message>
std::optional<Message> parse(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) return std::nullopt;
  return message;
}

std::optional<Call> read_create(const std::string& payload) {
  const auto message = parse<wire::CreateRequest>(payload);
  if (!message) return std::nullopt;
  return Call{Verb::kCreate, message->id(), message->bundle(), {}};
}

std::optional<Call> read_update(const std::string& payload) {
  const auto message = parse<wire::UpdateRequest>(payload);
  if (!message) return std::nullopt;
  return Call{Verb::kUpdate, message->id(), {}, message->resources().value()};
}

std::optional<Call> read_process(Verb verb, const std::string& payload) {
  const auto message = parse<wire::ProcessRequest>(payload);
  if (!message || !message->exec_id().empty()) return std::nullopt;
  return Call{verb, message->id(), {}, {}};
}

std::optional<Call> read_call(const rpc::Request& request) {
  const auto verb = verb_of(request);
  if (!verb) return std::nullopt;
  if (*verb == Verb::kCreate) return read_create(request.payload);
  if (*verb == Verb::kUpdate) return read_update(request.payload);
  return read_process(*verb, request.payload);
}

Response read_response(const ttrpc::Frame& frame) {
  const auto response = rpc::decode_response(frame.data);
  if (!response || response->code != rpc::Code::kOk) return {};
  const auto message = parse<wire::PidResponse>(response->payload);
  return {true, message ? static_cast<int>(message->pid()) : 0};
}

template <typename Handle>
void decode(ttrpc::Decoder& decoder, std::string_view bytes, Handle handle) {
  while (!bytes.empty()) {
    decoder.feed(bytes.substr(0, kPiece));
    bytes.remove_prefix(std::min(kPiece, bytes.size()));
    while (const auto frame = decoder.next()) handle(*frame);
  }
}

}  // namespace

Observer::Observer(Events events)
    : events_(std::move(events)), requests_(kLargestRead), responses_(kLargestRead) {}

void Observer::from_containerd(std::string_view bytes) {
  if (!append(request_bytes_, bytes)) read_requests(bytes);
}

void Observer::from_shim(std::string_view bytes) {
  if (!append(response_bytes_, bytes)) read_responses(bytes);
}

// A part of a large message is mostly skipped: that costs less than keeping it.
bool Observer::append(std::string& buffer, std::string_view bytes) {
  const bool small = bytes.size() <= kPiece;
  if (small) buffer += bytes;
  if (!small || buffer.size() >= kMostBuffered) digest();
  return small;
}

void Observer::digest() {
  read_requests(request_bytes_);
  read_responses(response_bytes_);
  request_bytes_.clear();
  response_bytes_.clear();
}

void Observer::read_requests(std::string_view bytes) {
  decode(requests_, bytes, [this](const ttrpc::Frame& frame) { request(frame); });
}

void Observer::read_responses(std::string_view bytes) {
  decode(responses_, bytes, [this](const ttrpc::Frame& frame) { response(frame); });
}

void Observer::request(const ttrpc::Frame& frame) {
  if (frame.header.type != ttrpc::kRequest || frame.skipped()) return;
  const auto request = rpc::decode_request(frame.data);
  const auto call = request ? read_call(*request) : std::nullopt;
  if (!call || call->container.empty()) return;
  events_.on_request(*call);
  if (open_.size() >= kMostOpen) open_.erase(open_.begin());
  open_.insert_or_assign(frame.header.stream, *call);
}

void Observer::response(const ttrpc::Frame& frame) {
  if (frame.header.type != ttrpc::kResponse) return;
  auto requested = open_.extract(frame.header.stream);
  if (requested.empty()) return;
  events_.on_response(requested.mapped(), read_response(frame));
}

}  // namespace ka::proxy
