#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/checkup.hpp"
#include "affinity/cli/commands.hpp"

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

}  // namespace

Exit run(const DoctorOptions& options, Output& output) {
  const std::vector<Symptom> symptoms = examine(options.root);
  const bool ok = std::ranges::none_of(
      symptoms, [](const Symptom& symptom) { return symptom.level == Symptom::Level::kBad; });
  output.show(to_json(symptoms, ok), [&] { return describe(symptoms); });
  return ok ? Exit::kDone : Exit::kNo;
}

}  // namespace ka::cli
