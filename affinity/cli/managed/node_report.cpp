// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/managed/node_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/managed/managed.hpp"
#include "affinity/cli/managed/pools_text.hpp"
#include "affinity/cli/status/describe.hpp"
#include "affinity/messages/terms.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;
using messages::counted;
using policy::CpuSet;

json::object check(const char* name, bool passed, const std::string& text) {
  return {{"check", name}, {"passed", passed}, {"text", text}};
}

/// What a newer daemon may write in another form is no CPU of ours.
CpuSet cpus_of(const json::value& object, const char* name) {
  const auto cpus = policy::parse_list<policy::CpuTag>(text_of(object, name));
  return cpus ? *cpus : CpuSet{};
}

/// CPUs that are in more than one of the sets that it is given.
class Overlap {
 public:
  void add(const CpuSet& cpus) {
    twice_ = twice_ | (cpus & seen_);
    seen_ = seen_ | cpus;
  }
  const CpuSet& twice() const { return twice_; }

 private:
  CpuSet seen_, twice_;
};

json::object check_pools(const json::value& pools) {
  Overlap overlap;
  for (const char* pool : {"exclusive", "shared", "infra"}) overlap.add(cpus_of(pools, pool));
  const CpuSet& twice = overlap.twice();
  return check(
      "pools", twice.empty(),
      twice.empty() ? "no CPU is in two pools" : messages::cpus_are(twice) + " in two pools");
}

json::object check_owners(const json::value& pools) {
  Overlap overlap;
  for (const json::value& container : array_of(pools, "containers")) {
    if (text_of(container, "pool") == "exclusive") overlap.add(cpus_of(container, "cpus"));
  }
  const CpuSet& twice = overlap.twice();
  return check("owners", twice.empty(),
               twice.empty() ? "no CPU has two exclusive containers"
                             : messages::cpus_are(twice) + " given to two exclusive containers");
}

json::object check_classes(const json::value& pools) {
  const long long without = std::ranges::count_if(
      array_of(pools, "containers"),
      [](const json::value& container) { return !text_of(container, "problem").empty(); });
  return check("classes", without == 0,
               without == 0 ? "each container has the class that was asked for"
                            : counted(without, "container") + " without the class asked for");
}

json::object check_saved(const json::value& pools) {
  const std::string unsaved = text_of(pools, "unsaved");
  return check("saved", unsaved.empty(),
               unsaved.empty() ? "allocations are on disk" : "not on disk: " + unsaved);
}

json::object check_kernel(const json::value& verify) {
  return check("kernel", flag_of(verify, "ok"), "verify: " + verdict_of(verify));
}

std::string check_line(const json::value& one) {
  return fmt::format("{:<7}  {}  {}\n", text_of(one, "check"),
                     flag_of(one, "passed") ? "passed" : "FAILED", text_of(one, "text"));
}

}  // namespace

json::object make_node_report(const json::object& pools, const json::object& verify) {
  const json::value all(pools);
  json::array checks{check_pools(all), check_owners(all), check_classes(all), check_saved(all),
                     check_kernel(verify)};
  const bool passed =
      std::ranges::all_of(checks, [](const json::value& one) { return flag_of(one, "passed"); });
  return {{"passed", passed}, {"checks", std::move(checks)}, {"pools", pools}, {"verify", verify}};
}

std::string describe_node_report(const json::value& report) {
  const json::object& parts = report.as_object();
  std::string text = describe_pools(parts.at("pools")) + "\nCHECK    RESULT\n";
  for (const json::value& one : array_of(report, "checks")) text += check_line(one);
  return text + "\nverify: " + describe_report(parts.at("verify"));
}

Exit run(const NodeReportOptions& options, Output& output) {
  const Daemon daemon(options.socket);
  const auto pools = daemon.get("/v1/pools");
  if (!pools) return output.fail(pools.error());
  const auto verify = daemon.post("/v1/verify");
  if (!verify) return output.fail(verify.error());
  const json::value report(make_node_report(*pools, *verify));
  output.show(report, [&report] { return describe_node_report(report); });
  return flag_of(report, "passed") ? Exit::kDone : Exit::kNo;
}

}  // namespace ka::cli
