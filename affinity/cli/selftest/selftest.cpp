// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/selftest.hpp"

#include <unistd.h>

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/kata/guest_agent.hpp"
#include "affinity/cli/selftest/cri_pods.hpp"
#include "affinity/cli/selftest/guest_affinity.hpp"
#include "affinity/cli/selftest/load.hpp"
#include "affinity/cli/selftest/node.hpp"
#include "affinity/cli/selftest/proof.hpp"
#include "affinity/cli/selftest/signals.hpp"
#include "affinity/cli/selftest/static_pods.hpp"
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
constexpr const char* kKubeletState = "/var/lib/kubelet/cpu_manager_state";
constexpr std::chrono::seconds kExecLimit{10};
constexpr std::chrono::seconds kProgramLimit{10};
/// A call shortly before the time limit has a chance all the same.
constexpr std::chrono::seconds kLeastLimit{5};
constexpr const char* kLock = "/run/kata-affinity-selftest.lock";

/// What a program prints on standard output; standard error is dropped.
Result<std::string> run_program(const std::vector<std::string>& words,
                                const base::WaitLimit& wait_limit) {
  static const std::array<fs::path, 5> kDirectories{"/usr/local/sbin", "/usr/local/bin",
                                                    "/usr/sbin", "/usr/bin", "/opt/kata/bin"};
  const bool is_path = words.front().starts_with('/');
  const auto file = is_path ? std::optional<fs::path>(words.front())
                            : base::find_program(words.front(), kDirectories);
  if (!file) return base::fail(ErrorCode::kNotFound, words.front() + " is not installed");
  const auto ended = base::run_program(
      {.file = *file, .words = words, .catches_errors = true, .wait_limit = wait_limit});
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

/// The kubelet that runs; absent: this node has none. One that is only stopped takes over again,
/// and removes pods that it does not know.
Result<std::optional<selftest::Kubelet>> find_kubelet() {
  auto kubelet = selftest::find_kubelet(kRoot);
  if (kubelet) return std::optional(std::move(*kubelet));
  if (kubelet.error().code != ErrorCode::kNotFound) return unexpected(kubelet.error());
  std::error_code ignored;
  if (!fs::exists(kKubeletState, ignored)) return std::nullopt;
  return base::fail(ErrorCode::kNotFound,
                    std::string("kubelet does not run, and ") + kKubeletState +
                        " has its assignments. Start it, or remove that file");
}

Result<policy::CpuSet> read_online_cpus() {
  const auto text = base::read_file("/sys/devices/system/cpu/online");
  if (!text) return unexpected(text.error());
  const auto cpus = policy::parse_list<policy::CpuTag>(text->substr(0, text->find('\n')));
  if (!cpus) return base::fail(ErrorCode::kInternal, "/sys/devices/system/cpu/online: no list");
  return *cpus;
}

/// One call of `selftest`, with what it acts through.
class Selftest {
 public:
  Selftest(const SelftestOptions& options, Output& output)
      : options_(options),
        output_(output),
        daemon_(options.socket, [this] { return wait_limit(); }),
        reader_(kRoot, selftest::read_mask),
        record_(kRecord) {
    limit_calls(whole_limit());
  }

  /// An error: it did not start.
  Result<Report> run() {
    auto ended = start();
    if (ended || signals_.pause(std::chrono::milliseconds(0))) return ended;
    return Report{Verdict::kInterrupted, "interrupted by a signal", {}, {}, {}};
  }

 private:
  using Images = std::vector<std::string>;
  using GatherFacts = std::function<Result<selftest::NodeFacts>(const selftest::Assignments&)>;

  std::chrono::seconds whole_limit() const { return std::chrono::seconds(options_.time_limit); }

  void limit_calls(std::chrono::seconds limit) { deadline_ = base::Deadline::in(clock_, limit); }

  /// Of a call that begins now.
  base::WaitLimit wait_limit() const {
    const bool is_short = deadline_.remaining(clock_) < kLeastLimit;
    return {is_short ? base::Deadline::in(clock_, kLeastLimit) : deadline_, signals_.descriptor()};
  }

  Result<cri::Runtime> find_runtime(std::chrono::seconds limit) const {
    auto socket = selftest::find_runtime(kRoot, options_.runtime_endpoint);
    if (!socket) return unexpected(std::move(socket.error()));
    return cri::Runtime(std::move(*socket), clock_,
                        [this, limit] { return wait_limit().at_most(limit); });
  }

  Result<Report> start() {
    if (::geteuid() != 0) {
      return base::fail(ErrorCode::kPermission,
                        "not root: the self-test starts pods. Run it with sudo");
    }
    const auto kubelet = find_kubelet();
    if (!kubelet) return unexpected(kubelet.error());
    return *kubelet ? run_with(**kubelet) : run_without_kubelet();
  }

  Result<Report> run_with(const selftest::Kubelet& kubelet) {
    if (!options_.runtime_endpoint.empty()) {
      return base::fail(ErrorCode::kConflict,
                        "kubelet runs, and starts the pods: omit --runtime-endpoint");
    }
    selftest::StaticPods pods(kubelet, record_);
    return run_on(pods, [&](const selftest::Assignments& assignments) {
      return gather_facts(kubelet, assignments);
    });
  }

  Result<Report> run_without_kubelet() {
    auto runtime = find_runtime(whole_limit());
    if (!runtime) return unexpected(runtime.error());
    const auto online = read_online_cpus();
    if (!online) return unexpected(online.error());
    selftest::CriPods pods(std::move(*runtime), *online);
    if (const auto able = pods.check(); !able) return unexpected(able.error());
    return run_on(pods, [this, &pods](const selftest::Assignments& assignments) {
      return gather_facts_of_runtime(pods, assignments);
    });
  }

  Result<selftest::NodeFacts> gather_facts(const selftest::Kubelet& kubelet,
                                           const selftest::Assignments& assignments) const {
    const auto images = list_images();
    if (!images && options_.image.empty()) return unexpected(images.error());
    return selftest::gather_facts(kRoot, kubelet, assignments, images.value_or(Images{}));
  }

  Result<Images> list_images() const {
    const auto runtime = find_runtime(whole_limit());
    if (!runtime) return unexpected(runtime.error());
    return runtime->images();
  }

  /// What the daemon takes for owned is not free, either.
  Result<selftest::NodeFacts> gather_facts_of_runtime(const selftest::CriPods& pods,
                                                      const selftest::Assignments& assignments) {
    auto facts = selftest::gather_facts_of_runtime(kRoot, pods, assignments);
    if (!facts) return facts;
    const auto node = daemon_.get("/v1/node");
    if (!node) return unexpected(node.error());
    const auto owned = policy::parse_list<policy::CpuTag>(text_of(*node, "exclusive"));
    facts->in_use |= owned.value_or(policy::CpuSet{});
    return facts;
  }

  Result<Report> run_on(selftest::Launcher& launcher, const GatherFacts& gather) {
    const auto locked = lock();
    if (!locked) return unexpected(locked.error());
    selftest::Proof proof(dependencies(launcher), whole_limit(), report_);
    if (!proof.remove_leftovers()) return report_;
    if (options_.clean) {
      report_.verdict = Verdict::kCleaned;
      return report_;
    }
    return prove(launcher, gather, proof);
  }

  Result<Report> prove(const selftest::Launcher& launcher, const GatherFacts& gather,
                       selftest::Proof& proof) {
    if (const auto able = check_daemon(daemon_); !able) return unexpected(able.error());
    const auto assignments = launcher.assignments();
    if (!assignments) return unexpected(assignments.error());
    auto facts = gather(*assignments);
    if (!facts) return unexpected(facts.error());
    facts->agent = find_guest_agent().value_or(fs::path());
    const auto choice = selftest::choose(*facts, {.handler = options_.handler,
                                                  .runtime_class = options_.runtime_class,
                                                  .image = options_.image,
                                                  .demo = options_.demo});
    if (!choice) return base::fail(ErrorCode::kConflict, choice.error());
    const auto run = [this](const std::vector<std::string>& words) {
      return run_program(words, wait_limit().at_most(kProgramLimit));
    };
    report_.node = selftest::describe_node(kRoot, run, daemon_.pid());
    proof.run(*choice, options_.demo);
    return report_;
  }

  /// Where there is no program to run, the first error says why.
  Result<std::string> run_inside(const std::string& container) {
    const auto runtime = find_runtime(kExecLimit);
    if (!runtime) return unexpected(runtime.error());
    Result<std::string> printed = base::fail(ErrorCode::kNotFound, "no program");
    for (const auto& words : selftest::guest_affinity_commands()) {
      auto tried = runtime->exec(container, words);
      if (tried) return tried;
      if (printed.error().code == ErrorCode::kNotFound) printed = std::move(tried);
    }
    return printed;
  }

  selftest::Dependencies dependencies(selftest::Launcher& launcher) {
    return {
        .reader = reader_,
        .launcher = launcher,
        .call =
            [this](const char* method, const char* target) {
              const bool post = std::string_view(method) == "POST";
              return post ? daemon_.post(target) : daemon_.get(target);
            },
        .run_inside = [this](const std::string& container) { return run_inside(container); },
        .clock = clock_,
        .pause = [this](std::chrono::milliseconds time) { return signals_.pause(time); },
        .occupy = [](const policy::CpuSet& cpus) { return std::make_shared<selftest::Load>(cpus); },
        .announce = [this](const std::string& step) { output_.print_message("... " + step); },
        .limit_calls = [this](std::chrono::seconds limit) { limit_calls(limit); }};
  }

  const SelftestOptions& options_;
  Output& output_;
  Daemon daemon_;
  selftest::Signals signals_;
  base::Clock clock_;
  base::Deadline deadline_ = base::Deadline::none();  ///< of calls
  selftest::Reader reader_;
  selftest::Record record_;
  Report report_;
};

/// A refusal is a report, too.
Report refused(const base::Error& error, const std::string& socket) {
  Report report{Verdict::kCannotRun, error.message, {}, {}, {}};
  const auto run = [](const std::vector<std::string>& words) {
    return run_program(words, base::WaitLimit::of(kProgramLimit));
  };
  report.node = selftest::describe_node(kRoot, run, Daemon(socket).pid());
  return report;
}

}  // namespace

Exit run(const SelftestOptions& options, Output& output) {
  const auto ended = Selftest(options, output).run();
  if (!ended && ended.error().code == ErrorCode::kUnavailable) return output.fail(ended.error());
  const Report report = ended ? *ended : refused(ended.error(), options.socket);
  const boost::json::object document = selftest::to_json(report);
  if (!options.report.empty()) {
    const auto written = write_output(options.report, boost::json::serialize(document) + '\n');
    if (!written) return output.fail(written.error());
  }
  output.show(document, [&report] { return selftest::describe(report); });
  return selftest::exit_of(report.verdict);
}

}  // namespace ka::cli
