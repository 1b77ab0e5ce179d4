// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "affinity/daemon/daemon.hpp"
#include "affinity/daemon/options.hpp"
#include "base/signals.hpp"
#include "base/usage/last_words.hpp"

namespace {

constexpr const char* kProgram = "kata-affinityd";
/// What a restart may mend, and what it cannot: the words of a configuration or command line.
constexpr int kFailed = 1, kWrongInput = 2;

/// What a thread other than the first throws ends here. Every thread stays where it is, and systemd
/// starts the daemon again.
[[noreturn]] void end_at_once() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    ka::usage::print_last_words(kProgram, error);
  } catch (...) {
    std::fprintf(stderr, "%s: fatal: unknown error\n", kProgram);
  }
  std::_Exit(kFailed);
}

int run(int argc, char** argv) {
  const auto options = ka::daemon::parse(argc, argv);
  if (!options) return options.error();
  ka::base::ignore_write_signals();
  const auto ended = ka::daemon::run(*options);
  if (ended) return 0;
  std::fprintf(stderr, "%s: %s\n", kProgram, ended.error().message.c_str());
  return ended.error().code == ka::base::ErrorCode::kInvalid ? kWrongInput : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_at_once);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    ka::usage::print_last_words(kProgram, error);
    return kFailed;
  }
}
