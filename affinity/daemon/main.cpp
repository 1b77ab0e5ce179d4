// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "affinity/daemon/daemon.hpp"
#include "affinity/daemon/options.hpp"

namespace {

constexpr int kFailed = 1, kWrongInput = 2;

/// The last message of a daemon that ran out of something (memory, threads, descriptors) where no
/// other way was left. Every thread stays where it is, and systemd starts it again.
int give_up(const char* reason) {
  std::fprintf(stderr, "kata-affinityd: fatal: %s\n", reason);
  return kFailed;
}

/// What a thread other than the first throws ends here.
[[noreturn]] void end_at_once() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    give_up(error.what());
  } catch (...) {
    give_up("unknown error");
  }
  std::_Exit(kFailed);
}

int run(int argc, char** argv) {
  const auto options = ka::daemon::parse(argc, argv);
  if (!options) return options.error();
  std::signal(SIGPIPE, SIG_IGN);  // whoever read the log may be gone
  const auto ended = ka::daemon::run(*options);
  if (ended) return 0;
  std::fprintf(stderr, "kata-affinityd: %s\n", ended.error().message.c_str());
  return ended.error().code == ka::base::ErrorCode::kInvalid ? kWrongInput : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_at_once);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return give_up(error.what());
  }
}
