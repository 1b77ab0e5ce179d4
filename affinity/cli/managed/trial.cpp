// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/managed/trial.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/managed/manifest.hpp"
#include "affinity/cli/managed/pools_text.hpp"

namespace ka::cli {
namespace {

std::string moved_line(const boost::json::value& move) {
  const std::string pod = text_of(move, "pod_name");
  return "  " + (pod.empty() ? text_of(move, "pod") : pod) + ' ' + text_of(move, "name") + ": " +
         text_of(move, "from") + " -> " + text_of(move, "to") + '\n';
}

std::string describe_moves(const boost::json::value& trial, const char* none) {
  std::string text;
  for (const boost::json::value& move : array_of(trial, "moves")) text += moved_line(move);
  return '\n' + (text.empty() ? none : "moves:\n" + text);
}

}  // namespace

std::string describe_trial(const boost::json::value& trial) {
  std::string text = flag_of(trial, "fits")      ? "fits\n\n"
                     : flag_of(trial, "refused") ? "does not fit, and would not be created\n\n"
                                                 : "does not fit\n\n";
  return text + describe_allocations(array_of(trial, "containers")) +
         describe_moves(trial, "moves no other container\n");
}

std::string describe_takeover(const boost::json::value& trial) {
  const auto& containers = array_of(trial, "containers");
  if (containers.empty()) return "no containers\n";
  return describe_allocations(containers) + describe_moves(trial, "moves no container\n");
}

Exit plan_pod(const std::string& socket, const std::string& file, Output& output) {
  const auto manifest = read_json_input(file);
  if (!manifest) return output.fail(manifest.error());
  const auto body = trial_of(*manifest);
  if (!body) return output.fail(about_input(file, body.error()));
  const auto trial = Daemon(socket).post("/v1/trials", *body);
  if (!trial) return output.fail(trial.error());
  const boost::json::value document(*trial);
  output.show(document, [&document] { return describe_trial(document); });
  return flag_of(document, "fits") ? Exit::kDone : Exit::kNo;
}

Exit plan_takeover(const std::string& socket, Output& output) {
  const auto trial = Daemon(socket).get("/v1/takeover");
  if (!trial) return output.fail(trial.error());
  output.show(*trial, [&trial] { return describe_takeover(*trial); });
  return Exit::kDone;
}

}  // namespace ka::cli
