// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <random>
#include <thread>

#include "affinity/cluster/options.hpp"
#include "affinity/cluster/reporter.hpp"
#include "base/signals.hpp"
#include "base/usage/last_words.hpp"

namespace {

using namespace ka;
using Duration = cluster::Reporter::Duration;

/// Zero to `most`; from any thread.
Duration random_part(Duration most) {
  thread_local std::mt19937_64 engine{std::random_device{}()};
  return Duration(std::uniform_int_distribution<Duration::rep>(0, most.count())(engine));
}

/// Nothing is left to do at an end: what the cluster sees stays true as long as the daemon runs. As
/// the first process of a container it would not end without a handler.
void end_on_signals() {
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { std::_Exit(0); });
  base::ignore_write_signals();
}

[[noreturn]] void run(const cluster::Options& options) {
  const base::Clock clock;
  const log::Log log(log::Level::kInfo, clock);
  const cluster::DaemonReader daemon(options.socket);
  const cluster::ApiServer server(clock, {options.host, options.port},
                                  cluster::Account(options.account), options.node, options.taints);
  cluster::PodWatch watch(server, log);
  const std::jthread watcher([&watch, &clock] {
    watch.run([&clock](std::chrono::milliseconds time) { clock.sleep(time + random_part(time)); });
  });
  std::optional<cluster::FeatureFile> feature_file;
  if (!options.nfd_file.empty()) feature_file.emplace(options.nfd_file);
  cluster::Reporter reporter({.interval = std::chrono::seconds(options.interval),
                              .pace = std::chrono::seconds(options.pace),
                              .marks_node = options.marks_node && !feature_file,
                              .reports_classes = options.reports_classes,
                              .withdraws = options.withdraws},
                             {clock, log, daemon, server, watch, random_part, feature_file});
  for (;;) clock.sleep(reporter.step());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = cluster::parse(argc, argv);
    if (!options) return options.error();
    end_on_signals();
    run(*options);
  } catch (const std::exception& error) {
    ka::usage::print_last_words("kata-affinity-reporter", error);
    return 1;
  }
}
