// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <iterator>

#include "affinity/cli/checkup.hpp"
#include "affinity/cli/commands.hpp"
#include "affinity/cli/daemon.hpp"

namespace ka::cli {
namespace {

boost::json::object to_json(const std::vector<Symptom>& symptoms, bool ok) {
  boost::json::array checks;
  for (const Symptom& symptom : symptoms) {
    checks.push_back({{"check", symptom.check},
                      {"level", level_name(symptom.level)},
                      {"text", symptom.text},
                      {"advice", symptom.advice}});
  }
  return {{"ok", ok}, {"checks", std::move(checks)}};
}

std::string describe(const std::vector<Symptom>& symptoms) {
  std::string text;
  for (const Symptom& symptom : symptoms) {
    text += fmt::format("{:<5} {:<8} {}\n", level_name(symptom.level), symptom.check, symptom.text);
    if (!symptom.advice.empty()) text += fmt::format("{:15}-> {}\n", "", symptom.advice);
  }
  return text;
}

/// What runs is known where the files are of the node that we are on.
std::vector<Symptom> examine_all(const DoctorOptions& options) {
  std::vector<Symptom> symptoms = examine(options.root);
  if (options.root != "/") return symptoms;
  if (const auto sandboxes = Daemon(options.socket).get("/v1/sandboxes")) {
    std::ranges::move(examine_sandboxes(*sandboxes, options.root), std::back_inserter(symptoms));
  } else {
    symptoms.push_back({"daemon", Symptom::Level::kNote,
                        "no sandbox was looked at: " + sandboxes.error().message,
                        "start kata-affinityd"});
  }
  return symptoms;
}

}  // namespace

Exit run(const DoctorOptions& options, Output& output) {
  const std::vector<Symptom> symptoms = examine_all(options);
  const bool ok = std::ranges::none_of(
      symptoms, [](const Symptom& symptom) { return symptom.level == Symptom::Level::kBad; });
  output.show(to_json(symptoms, ok), [&] { return describe(symptoms); });
  return ok ? Exit::kDone : Exit::kNo;
}

}  // namespace ka::cli
