// SPDX-License-Identifier: Apache-2.0
// A node that writes down what sources report and ask of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/source/source.hpp"

namespace ka::tests {

/// "pod s1", "container s1/c1", "kubelet", ...
inline std::string subject_of(const policy::ledger::Event& event) {
  using namespace policy::ledger;
  if (const auto* pod = std::get_if<PodSeen>(&event.body)) return "pod " + pod->id;
  if (const auto* gone = std::get_if<PodGone>(&event.body)) return "pod gone " + gone->id;
  if (const auto* seen = std::get_if<ContainerSeen>(&event.body)) {
    return "container " + seen->sandbox + '/' + seen->id;
  }
  if (const auto* gone = std::get_if<ContainerGone>(&event.body)) {
    return "container gone " + gone->sandbox + '/' + gone->container;
  }
  if (std::holds_alternative<ResourcesSeen>(event.body)) return "pod-resources";
  if (std::holds_alternative<PreparedSeen>(event.body)) return "dra";
  return std::holds_alternative<KubeletSeen>(event.body) ? "kubelet" : "?";
}

class RecordingNode final : public source::Node, public source::Peers {
 public:
  explicit RecordingNode(const base::Clock& clock) : clock_(clock) {}

  void handle(const std::vector<policy::ledger::Event>& events) override {
    record("handle", events);
  }
  void narrow(const std::vector<policy::ledger::Event>& events,
              const base::Deadline& deadline) override {
    record("narrow within " + budget(deadline), events);
  }
  void finish(std::string_view sandbox) override { add("finish " + std::string(sandbox)); }
  void observe(std::string_view sandbox) override { add("observe " + std::string(sandbox)); }
  void synced(policy::ledger::Source source) override {
    add("synced " + std::string(policy::ledger::source_name(source)));
  }
  void set_status(policy::ledger::Source source, source::Status status) override {
    statuses[source] = std::move(status);
  }
  void set_late(policy::ledger::Source source, const std::optional<base::Error>& why) override {
    late[source] = why;
  }
  void count_answer(std::chrono::nanoseconds elapsed) override { answers.push_back(elapsed); }
  void count_narrowed_shim(const std::string&, std::chrono::nanoseconds) override {}
  const policy::ledger::Ledger& ledger() const override { return known; }
  const policy::Topology& topology() const override { return machine; }
  bool may_widen() const override { return true; }
  std::vector<std::string> sandbox_ids() const override { return {}; }
  std::optional<source::SandboxState> sandbox(std::string_view) const override {
    return std::nullopt;
  }

  void catch_up(const base::Deadline& deadline) override {
    add("catch up within " + budget(deadline));
  }
  void notify(source::Notice notice) override { notices.push_back(notice); }

  std::vector<std::string> drain() { return std::exchange(lines_, {}); }
  void add(std::string line) { lines_.push_back(std::move(line)); }

  policy::ledger::Ledger known;  ///< what is applied to it
  policy::Topology machine;
  std::map<policy::ledger::Source, source::Status> statuses;
  std::map<policy::ledger::Source, std::optional<base::Error>> late;
  std::vector<source::Notice> notices;
  std::vector<std::chrono::nanoseconds> answers;

 private:
  void record(std::string line, const std::vector<policy::ledger::Event>& events) {
    const char* separator = ": ";
    for (const auto& event : events) {
      line += std::exchange(separator, ", ") + subject_of(event);
      known.apply(event);
    }
    add(std::move(line));
  }

  std::string budget(const base::Deadline& deadline) const {
    if (deadline == base::Deadline::none()) return "no deadline";
    const auto left = deadline.remaining(clock_);
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(left).count()) +
           " ms";
  }

  const base::Clock& clock_;
  std::vector<std::string> lines_;
};

}  // namespace ka::tests
