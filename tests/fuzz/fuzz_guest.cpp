// SPDX-License-Identifier: Apache-2.0
// A guest that says anything, cut anywhere, to a host that asked something: the first byte is how
// the conversation opens and the length of the pieces. The same bytes go to the agent's readers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "guest-agent/host/kata_session.hpp"
#include "guest-agent/host/measurement.hpp"
#include "guest-agent/host/session.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "policy/plan/guest.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace ka;

policy::GuestSpec spec() {
  policy::GuestSpec spec;
  spec.vcpus = {{.hardware_id = 0}, {.hardware_id = 3, .index = 3, .common = false}};
  spec.containers = {{.id = "c1", .hardware_ids = {3}, .dedicated = true}};
  return spec;
}

/// What gets through speaks of its own container and of its own CPUs only.
void check(const guest::News& news) {
  policy::GuestCpuSet known;
  for (const auto& cpu : news.report.cpus) known.add(cpu.number);
  for (const auto& state : news.report.containers) {
    tests::require(state.id == "c1" && state.actual.subset_of(known));
  }
  (void)policy::plan::check_guest(spec(), news.report);
}

void read_alone(std::string_view bytes) {
  if (const auto report = guest::decode_report(bytes)) {
    tests::require(guest::decode_report(guest::encode(*report)) == report);
  }
  if (const auto read = guest::decode_spec(bytes)) {
    tests::require(guest::decode_spec(guest::encode(*read)) == read);
    (void)policy::plan::place_in_guest(*read, {});
  }
  if (const auto latencies = guest::decode_latencies(bytes)) {
    tests::require(guest::decode_latencies(guest::encode(*latencies)) == latencies);
  }
  if (const auto request = guest::decode_latency_request(bytes)) {
    tests::require(guest::decode_latency_request(guest::encode(*request)) == request);
  }
  (void)guest::decode_hello(bytes);
  (void)guest::decode_watch(bytes);
  (void)guest::decode_container(bytes);
}

/// The same bytes in kata-agent's place: no word about a container that was not asked for.
void receive_kata(guest::Opening opening, std::string_view bytes) {
  if (opening == guest::Opening::kMark) return;
  guest::KataSession session(opening, 1024);
  std::vector<guest::KataAnswer> answers;
  std::string out = session.start();
  session.update("c1", {0}, out);
  (void)session.receive(bytes, answers, out);
  for (const auto& answer : answers) tests::require(answer.container == "c1");
}

void receive_latencies(guest::Opening opening, std::string_view bytes) {
  guest::MeasurementSession session({.hardware_ids = {1}}, opening);
  std::string out = session.start();
  session.receive(bytes, out);
  if (session.result() && *session.result()) {
    tests::require((*session.result())->cpus.size() == 1 &&
                   (*session.result())->cpus[0].hardware_id == 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::max<std::size_t>(data[0] / 4U, 1);
  const auto opening = static_cast<guest::Opening>(data[0] % 3);
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  read_alone(rest);
  receive_kata(opening, rest);
  receive_latencies(opening, rest);
  guest::Session session(opening);
  (void)session.start();
  std::vector<guest::News> news;
  std::string out;
  bool watched = false;
  while (!rest.empty() && session.receive(rest.substr(0, piece), news, out)) {
    rest.remove_prefix(std::min(piece, rest.size()));
    if (!session.ready() || watched) continue;
    session.apply(spec(), out);
    session.watch(out);
    watched = true;
  }
  for (const guest::News& one : news) check(one);
  return 0;
}
