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
  std::vector<Symptom> symptoms = examine(options.root);
  if (options.root != "/") return symptoms;
  if (::geteuid() != 0) {
    symptoms.insert(symptoms.begin(),
                    {"root", Symptom::Level::kNote,
                     "not root: debugfs, kubelet's state and cgroups may be unreadable, and the "
                     "lines below wrong",
                     "run doctor as root", "sudo kata-affinityctl doctor"});
  }
  if (const auto sandboxes = Daemon(options.socket).get("/v1/sandboxes")) {
    std::ranges::move(examine_sandboxes(*sandboxes, options.root), std::back_inserter(symptoms));
  } else {
    symptoms.push_back({"daemon", Symptom::Level::kNote,
                        "no sandbox was checked: " + sandboxes.error().message,
                        "run doctor again when the daemon is up",
                        ::geteuid() == 0 ? "systemctl start kata-affinityd" : ""});
  }
  return symptoms;
}

}  // namespace

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
