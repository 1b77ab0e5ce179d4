// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/doctor/doctor.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <iterator>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/doctor/checkup.hpp"

namespace ka::cli {
namespace {

/// Running processes are visible only if `root` is this node's own.
std::vector<Symptom> examine_all(const DoctorOptions& options) {
  if (options.root != "/") return examine(options.root);
  const bool is_root = ::geteuid() == 0;
  std::vector<Symptom> symptoms = examine_caller(is_root);
  std::ranges::move(examine(options.root), std::back_inserter(symptoms));
  const auto sandboxes = Daemon(options.socket).get("/v1/sandboxes");
  std::ranges::move(examine_daemon(sandboxes, options.root, is_root), std::back_inserter(symptoms));
  return symptoms;
}

}  // namespace

std::vector<Symptom> examine_caller(bool is_root) {
  if (is_root) return {};
  return {{"root", Symptom::Level::kNote,
           "not root: debugfs, kubelet's state and cgroups may be unreadable, and the lines below "
           "wrong",
           "run doctor as root", "sudo kata-affinityctl doctor"}};
}

std::vector<Symptom> examine_daemon(const base::Result<boost::json::object>& sandboxes,
                                    const std::filesystem::path& root, bool is_root) {
  if (sandboxes) return examine_sandboxes(*sandboxes, root);
  return {{"daemon", Symptom::Level::kNote, "no sandbox was checked: " + sandboxes.error().message,
           "run doctor again when the daemon is up",
           is_root ? "systemctl start kata-affinityd" : ""}};
}

Exit run(const DoctorOptions& options, Output& output) {
  const std::vector<Symptom> symptoms = examine_all(options);
  const boost::json::object document = to_json(symptoms);
  const Screen screen = output.screen();
  if (screen.colours && !output.json()) {
    output.print(coloured(fit(describe_checkup(symptoms), screen.columns)));
  } else {
    output.show(document, [&symptoms] { return describe_checkup(symptoms); });
  }
  return document.at("ok").as_bool() ? Exit::kDone : Exit::kNo;
}

}  // namespace ka::cli
