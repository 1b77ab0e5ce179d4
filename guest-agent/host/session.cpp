// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/session.hpp"

#include <algorithm>
#include <utility>

#include "base/ttrpc/envelope.hpp"

namespace ka::guest {
namespace {

const Hello& ours() {
  static const Hello kOurs{.program = "kata-affinityd"};
  return kOurs;
}

std::string versions(std::uint32_t oldest, std::uint32_t newest) {
  return std::to_string(oldest) + '-' + std::to_string(newest);
}

std::set<std::string> ids_of(const policy::GuestSpec& spec) {
  std::set<std::string> ids;
  for (const policy::GuestContainer& container : spec.containers) ids.insert(container.id);
  return ids;
}

/// Two CPUs cannot be the same one.
bool have_own_ids(const std::vector<policy::GuestCpu>& cpus) {
  std::set<std::uint64_t> ids;
  return std::ranges::all_of(cpus, [&ids](const policy::GuestCpu& cpu) {
    return !cpu.hardware_id || ids.insert(*cpu.hardware_id).second;
  });
}

}  // namespace

Session::Session(Opening opening, std::uint32_t port) : opener_(opening, port) {}

std::string Session::start() {
  std::string out = opener_.first();
  if (out.empty()) hello(out);
  return out;
}

void Session::hello(std::string& out) {
  stage_ = Stage::kHello;
  hello_ = send("Hello", encode(ours()), out);
}

bool Session::fail(std::string reason) {
  stage_ = Stage::kFailed;
  failure_ = std::move(reason);
  return false;
}

bool Session::receive(std::string_view bytes, std::vector<News>& news, std::string& out) {
  if (stage_ == Stage::kFailed) return false;
  if (stage_ == Stage::kOpening && !open(bytes, out)) return stage_ != Stage::kFailed;
  decoder_.feed(bytes);
  while (const auto frame = decoder_.next()) {
    if (!handle(*frame, news, out)) return false;
  }
  return true;
}

/// True once ttrpc begins, with `bytes` what belongs to it.
bool Session::open(std::string_view& bytes, std::string& out) {
  if (!opener_.consume(bytes)) {
    return opener_.failure().empty() ? false : fail(std::string(opener_.failure()));
  }
  hello(out);
  return true;
}

bool Session::is_owed() const {
  if (stage_ == Stage::kFailed) return false;
  return !ready() || apply_ != 0 || !decoder_.idle();
}

std::uint32_t Session::send(std::string_view method, std::string_view payload, std::string& out) {
  const std::uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  out += ttrpc::write_call(stream, {.service = kService, .method = method, .payload = payload});
  return stream;
}

void Session::apply(policy::GuestSpec spec, std::string& out) {
  next_spec_ = std::move(spec);
  send_spec(out);
}

void Session::send_spec(std::string& out) {
  if (!ready() || apply_ != 0 || !next_spec_) return;
  sent_ids_ = ids_of(*next_spec_);
  apply_ = send("Apply", encode(*next_spec_), out);
  next_spec_.reset();
}

void Session::watch(std::string& out) {
  if (!ready() || watch_ != 0) return;
  watch_ = send("Watch", encode_watch(generation_), out);
}

bool Session::handle(const ttrpc::Frame& frame, std::vector<News>& news, std::string& out) {
  if (frame.header.type != ttrpc::kResponse) return fail("the agent sent a malformed response");
  if (frame.skipped()) return fail("the agent's response exceeds the limit");
  const std::uint32_t stream = frame.header.stream;
  const bool solicited = stream != 0 && (stream == hello_ || stream == apply_ || stream == watch_);
  if (!solicited) return fail("the agent sent an unsolicited response");
  const auto answer = ttrpc::read_answer(frame.data);
  if (!answer) return fail("cannot parse the agent's response");
  if (answer->code != ttrpc::Code::kOk) {
    return fail("the agent refused a call: code " +
                std::to_string(static_cast<std::int32_t>(answer->code)));
  }
  if (stream == hello_) return handle_hello(answer->payload, out);
  const bool applied = stream == apply_;
  (applied ? apply_ : watch_) = 0;
  if (applied) ++answered_;
  if (!handle_report(answer->payload, applied, news)) return false;
  send_spec(out);
  return true;
}

bool Session::handle_hello(std::string_view payload, std::string& out) {
  hello_ = 0;
  ++answered_;
  const auto theirs = decode_hello(payload);
  if (!theirs) return fail("cannot parse the agent's hello");
  if (!common_version(ours(), *theirs)) {
    return fail("the agent speaks versions " + versions(theirs->oldest, theirs->version) +
                " of the protocol, and this daemon " + versions(ours().oldest, ours().version));
  }
  program_ = theirs->program;
  stage_ = Stage::kReady;
  send_spec(out);
  return true;
}

bool Session::handle_report(std::string_view payload, bool applied, std::vector<News>& news) {
  auto report = decode_report(payload);
  if (!report) return fail("cannot parse the agent's report");
  if (auto wrong = check(*report); !wrong.empty()) return fail(std::move(wrong));
  generation_ = report->generation;
  if (applied) applied_ids_ = sent_ids_;
  // A newer request is not answered yet.
  news.push_back({std::move(*report), applied && !next_spec_});
  return true;
}

/// A guest may report only its own CPUs, and containers that it was asked about.
std::string Session::check(const policy::GuestReport& report) const {
  if (!have_own_ids(report.cpus)) return "the agent reports two CPUs with the same id";
  policy::GuestCpuSet known;
  for (const policy::GuestCpu& cpu : report.cpus) known.add(cpu.number);
  bool possible = report.common.subset_of(known);
  for (const policy::GuestContainerState& state : report.containers) {
    if (!sent_ids_.contains(state.id) && !applied_ids_.contains(state.id)) {
      return "the agent reports a container that is not its own";
    }
    possible &= state.wanted.subset_of(known) && state.actual.subset_of(known);
    for (const policy::GuestProcess& process : state.processes) {
      possible &= process.cpus.subset_of(known);
    }
  }
  return possible ? "" : "the agent reports CPUs that it does not have";
}

}  // namespace ka::guest
