// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/selftest.hpp"

#include <unistd.h>

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <optional>
#include <string_view>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/selftest/load.hpp"
#include "affinity/cli/selftest/node.hpp"
#include "affinity/cli/selftest/proof.hpp"
#include "affinity/cli/selftest/signals.hpp"
#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/program.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using selftest::Report;
using selftest::Verdict;

constexpr const char* kRoot = "/";
constexpr const char* kRecord = "/var/lib/kata-affinity/selftest.json";
constexpr const char* kLock = "/run/kata-affinity-selftest.lock";

/// What a program prints on standard output; standard error is dropped.
Result<std::string> run_program(const std::vector<std::string>& words) {
  static const std::array<fs::path, 5> kDirectories{"/usr/local/sbin", "/usr/local/bin",
                                                    "/usr/sbin", "/usr/bin", "/opt/kata/bin"};
  const bool is_path = words.front().starts_with('/');
  const auto file = is_path ? std::optional<fs::path>(words.front())
                            : base::find_program(words.front(), kDirectories);
  if (!file) return base::fail(ErrorCode::kNotFound, words.front() + " is not installed");
  const auto ended = base::run_program({.file = *file, .words = words, .catches_errors = true});
  if (!ended) return unexpected(ended.error());
  if (ended->status != 0) return base::fail(ErrorCode::kInternal, ended->errors);
  return ended->output;
}

/// Without a daemon that places threads there is nothing to check.
Result<void> check_daemon(const Daemon& daemon) {
  const auto node = daemon.get("/v1/node");
  if (!node) return unexpected(node.error());
  if (flag_of(*node, "observe")) {
    return base::fail(ErrorCode::kConflict,
                      "the daemon's mode is \"observe\": it places no thread. Run: "
                      "kata-affinityctl setup --profile isolated --yes");
  }
  if (flag_of(*node, "enabled")) return {};
  return base::fail(ErrorCode::kConflict,
                    "the daemon is disabled. Set enable = true in [affinity] and reload it");
}

Result<base::Fd> lock() {
  auto locked = base::lock_file(kLock);
  if (locked || locked.error().code != ErrorCode::kConflict) return locked;
  return base::fail(ErrorCode::kConflict, "another self-test is running");
}

Result<selftest::Kubelet> find_kubelet() {
  if (::geteuid() != 0) {
    return base::fail(ErrorCode::kPermission,
                      "not root: the self-test writes static pods for kubelet. Run it with sudo");
  }
  return selftest::find_kubelet(kRoot);
}

/// One call of `selftest`, with what it acts through.
class Selftest {
 public:
  Selftest(const SelftestOptions& options, Output& output)
      : options_(options),
        output_(output),
        daemon_(options.socket),
        reader_(kRoot, selftest::read_mask),
        record_(kRecord) {}

  /// An error: it did not start.
  Result<Report> run() {
    const auto kubelet = find_kubelet();
    if (!kubelet) return unexpected(kubelet.error());
    const auto locked = lock();
    if (!locked) return unexpected(locked.error());
    selftest::Proof proof(dependencies(), *kubelet, record_,
                          std::chrono::seconds(options_.time_limit), report_);
    if (!proof.remove_leftovers()) return report_;
    if (options_.clean) {
      report_.verdict = Verdict::kCleaned;
      return report_;
    }
    return prove(*kubelet, proof);
  }

 private:
  Result<Report> prove(const selftest::Kubelet& kubelet, selftest::Proof& proof) {
    if (const auto able = check_daemon(daemon_); !able) return unexpected(able.error());
    const auto assignments = selftest::read_assignments(kubelet.state);
    if (!assignments) return unexpected(assignments.error());
    const auto facts = selftest::gather_facts(kRoot, kubelet, *assignments, run_program);
    const auto choice = selftest::choose(facts, {.handler = options_.handler,
                                                 .runtime_class = options_.runtime_class,
                                                 .image = options_.image,
                                                 .demo = options_.demo});
    if (!choice) return base::fail(ErrorCode::kConflict, choice.error());
    report_.node = selftest::describe_node(kRoot, run_program);
    proof.run(*choice, options_.demo);
    return report_;
  }

  selftest::Dependencies dependencies() {
    return {
        .reader = reader_,
        .call =
            [this](const char* method, const char* target) {
              const bool post = std::string_view(method) == "POST";
              return post ? daemon_.post(target) : daemon_.get(target);
            },
        .clock = clock_,
        .pause = [this](std::chrono::milliseconds time) { return signals_.pause(time); },
        .occupy = [](const policy::CpuSet& cpus) { return std::make_shared<selftest::Load>(cpus); },
        .announce = [this](const std::string& step) { output_.print_message("... " + step); }};
  }

  const SelftestOptions& options_;
  Output& output_;
  Daemon daemon_;
  selftest::Signals signals_;
  base::Clock clock_;
  selftest::Reader reader_;
  selftest::Record record_;
  Report report_;
};

/// A refusal is a report, too.
Report refused(const base::Error& error) {
  Report report{Verdict::kCannotRun, error.message, {}, {}, {}};
  report.node = selftest::describe_node(kRoot, run_program);
  return report;
}

}  // namespace

Exit run(const SelftestOptions& options, Output& output) {
  const auto ended = Selftest(options, output).run();
  if (!ended && ended.error().code == ErrorCode::kUnavailable) return output.fail(ended.error());
  const Report report = ended ? *ended : refused(ended.error());
  const boost::json::object document = selftest::to_json(report);
  if (!options.report.empty()) {
    const auto written = write_output(options.report, boost::json::serialize(document) + '\n');
    if (!written) return output.fail(written.error());
  }
  output.show(document, [&report] { return selftest::describe(report); });
  return selftest::exit_of(report.verdict);
}

}  // namespace ka::cli
