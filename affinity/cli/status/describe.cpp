// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/status/describe.hpp"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/grade.hpp"
#include "affinity/cli/client/start_text.hpp"
#include "affinity/messages/terms.hpp"
#include "base/json/lookup.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

std::string section(const char* title, const json::array& notes, const char* mark) {
  return notes.empty() ? std::string() : std::string(title) + '\n' + list_notes(notes, mark);
}

/// ", in a cpuset partition", and why not.
std::string partition_words(const json::value& pod) {
  const json::value& partition = base::member(pod, "partition");
  if (!partition.is_object()) return {};
  const std::string problem = text_of(partition, "problem");
  return problem.empty() ? ", in a cpuset partition" : ", no cpuset partition: " + problem;
}

/// A line for each set of CPUs that more than one container owns, of any runtime.
std::string describe_contests(const json::value& list) {
  std::string text;
  for (const json::value& contest : array_of(list, "contests")) {
    text += "! " + text_of(contest, "text") + '\n';
  }
  return text;
}

/// A line for each pod without a VM whose grade is quiet.
std::string describe_pods(const json::value& list) {
  std::string text;
  for (const json::value& pod : array_of(list, "pods")) {
    const std::string name = text_of(pod, "pod_name");
    text += fmt::format("pod {} (no VM), CPUs {}: grade: {}{}\n",
                        name.empty() ? text_of(pod, "id") : name, text_of(pod, "cpus"),
                        grade_text(pod), partition_words(pod));
  }
  return text;
}

}  // namespace

std::string or_none(const std::string& cpus) { return cpus.empty() ? "-" : cpus; }

std::string list_notes(const json::array& notes, const char* mark) {
  std::string text;
  for (const json::value& note : notes) {
    const std::string sentence =
        note.is_string() ? std::string(std::string_view(note.get_string())) : text_of(note, "text");
    const std::string source = text_of(note, "source");
    text += fmt::format("  {} {}{}\n", mark, sentence, source.empty() ? "" : " [" + source + "]");
  }
  return text;
}

std::string describe_legend() {
  return "  mask       CPUs of all containers of the sandbox\n"
         "  WANTED     planned CPUs\n"
         "  ACTUAL     CPUs that the kernel allows\n"
         "  dedicated  has one CPU of an exclusive container to itself\n"
         "  floating   may run on any of these CPUs\n"
         "  TID +2     two more threads with the same CPUs\n"
         "  !          warning; `kata-affinityctl explain ID` gives the reasons\n";
}

std::string describe_sources(const json::value& list) {
  std::string text;
  for (const json::value& source : array_of(list, "sources")) {
    const std::string late = text_of(source, "late");
    text += fmt::format("{} {}: {}{}\n", flag_of(source, "up") && late.empty() ? "+" : "!",
                        text_of(source, "source"), text_of(source, "text"),
                        late.empty() ? "" : "; read only at each drift check: " + late);
  }
  return text;
}

std::string describe_tuned(const json::value& list) {
  std::string text;
  for (const json::value& row : array_of(list, "tuned")) {
    const std::string pod = text_of(row, "pod_name"), name = text_of(row, "name");
    const std::string problem = text_of(row, "problem");
    text += fmt::format(
        "container {} of pod {}: {}: {}{}\n", name.empty() ? text_of(row, "container") : name,
        pod.empty() ? text_of(row, "pod") : pod, text_of(row, "annotation"), text_of(row, "value"),
        problem.empty() ? " on " + messages::cpus_text(text_of(row, "cpus"))
                        : " NOT in force: " + problem);
  }
  return text;
}

std::string describe_rest(const json::value& list) {
  return describe_pods(list) + describe_tuned(list) + describe_contests(list) +
         describe_start(list) + describe_sources(list);
}

std::string describe_sandboxes(const json::value& list) {
  const json::array& sandboxes = array_of(list, "sandboxes");
  const std::string rest = describe_rest(list);
  // What the start still waits for, or could not read, may have some.
  if (sandboxes.empty())
    return "no VM sandboxes" + std::string(describe_start(list).empty() ? "" : " known") + '\n' +
           rest;
  std::string text;
  for (const json::value& sandbox : sandboxes) {
    text += (text.empty() ? "" : "\n") + describe_sandbox(sandbox);
  }
  return text + (rest.empty() ? "" : "\n") + rest;
}

std::string describe_reasons(const json::value& explanation) {
  return "sandbox " + text_of(explanation, "id") + '\n' +
         section("Facts [source]", array_of(explanation, "facts"), "-") +
         section("Rules applied", array_of(explanation, "rules"), "-") +
         section("Result", array_of(explanation, "results"), "-") +
         section("Warnings", array_of(explanation, "warnings"), "!");
}

std::string describe_event(const json::value& event) {
  const std::string sandbox = text_of(event, "sandbox");
  return fmt::format("{}  {:<22} {}{}\n", text_of(event, "time"), text_of(event, "kind"),
                     sandbox.empty() ? "" : sandbox + ": ", text_of(event, "text"));
}

}  // namespace ka::cli
