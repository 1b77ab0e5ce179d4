// SPDX-License-Identifier: Apache-2.0
// A process with the outside of a VMM and nothing inside: N threads that sleep, named like QEMU's.
// For measuring what placing threads costs, without a guest that wants the CPUs too. Ends when its
// standard input does.
//
//   qemu-system-like VCPUS [OTHERS]
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

void sleep_named(const std::string& name) {
  std::thread([name] {
    ::prctl(PR_SET_NAME, name.c_str());
    for (;;) ::pause();
  }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  const int vcpus = argc > 1 ? std::atoi(argv[1]) : 4;
  const int others = argc > 2 ? std::atoi(argv[2]) : 0;
  for (int i = 0; i < vcpus; ++i) sleep_named("CPU " + std::to_string(i) + "/TCG");
  for (int i = 0; i < others; ++i) sleep_named("worker");
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  std::_Exit(0);
}
