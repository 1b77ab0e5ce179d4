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

}  // namespace

std::string describe_trial(const boost::json::value& trial) {
  std::string text = flag_of(trial, "fits")      ? "fits\n\n"
                     : flag_of(trial, "refused") ? "does not fit, and would not be created\n\n"
                                                 : "does not fit\n\n";
  text += describe_allocations(array_of(trial, "containers"));
  const auto& moves = array_of(trial, "moves");
  if (moves.empty()) return text + "\nmoves no other container\n";
  text += "\nmoves:\n";
  for (const boost::json::value& move : moves) text += moved_line(move);
  return text;
}

Exit plan_pod(const std::string& socket, const std::string& file, Output& output) {
  const auto manifest = read_json_input(file);
  if (!manifest) return output.fail(manifest.error());
  const auto body = trial_of(*manifest);
  if (!body) return output.fail(about_input(file, base::Error(body.error())));
  const auto trial = Daemon(socket).post("/v1/trials", *body);
  if (!trial) return output.fail(trial.error());
  const boost::json::value document(*trial);
  output.show(document, [&document] { return describe_trial(document); });
  return flag_of(document, "fits") ? Exit::kDone : Exit::kNo;
}

}  // namespace ka::cli
