// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/source_findings.hpp"

#include <string>

#include "base/inotify.hpp"

namespace ka::line {
namespace {

using policy::ledger::Source;

bool is_missed(Source source, const board::SourceView& view, const policy::ledger::Ledger& ledger) {
  if (view.up || view.absent) return false;
  return source != Source::kPodResources || ledger.lacks_claims();
}

Finding source_down(Source source, const board::SourceView& view) {
  const std::string name(policy::ledger::source_name(source));
  return {.severity = Severity::kUnknown,
          .invariant = "unread",
          .sandbox = {},
          .subject = name,
          .wanted = {},
          .actual = {},
          .text = "source " + name + " is down, owners of CPUs may have changed: " + view.text,
          .reason = "source-down",
          .remedy = {}};
}

Finding pod_unseen(Source source, const std::string& pod, const std::string& why) {
  return {.severity = Severity::kUnknown,
          .invariant = "unread",
          .sandbox = {},
          .subject = "pod " + pod,
          .wanted = {},
          .actual = {},
          .text = "cannot see whether pod " + pod + ", which " +
                  std::string(policy::ledger::source_name(source)) + " reports, has a VM: " + why,
          .reason = "vm-unseen",
          .remedy = {}};
}

}  // namespace

std::vector<Finding> evaluate_lateness(const std::map<Source, base::Error>& late) {
  std::vector<Finding> findings;
  for (const auto& [source, why] : late) {
    const std::string name(policy::ledger::source_name(source));
    findings.push_back(
        {.severity = Severity::kDegraded,
         .invariant = "late",
         .sandbox = {},
         .subject = name,
         .wanted = {},
         .actual = {},
         .text = "source " + name + " is read only at each drift check: " + why.message,
         .reason = "source-late",
         .remedy = base::inotify_remedy(why)});
  }
  return findings;
}

std::vector<Finding> evaluate_sources(const std::map<Source, board::SourceView>& sources,
                                      const policy::ledger::Ledger& ledger) {
  std::vector<Finding> findings;
  for (const auto& [source, view] : sources) {
    if (is_missed(source, view, ledger)) findings.push_back(source_down(source, view));
    for (const auto& [pod, why] : view.unseen) findings.push_back(pod_unseen(source, pod, why));
  }
  return findings;
}

}  // namespace ka::line
