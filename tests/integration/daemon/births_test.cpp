// SPDX-License-Identifier: Apache-2.0
// Sandboxes are born under the real daemon: folders are made as containerd and Kata make them, the
// shim is a program that has the name of Kata's, and its mask is read from the kernel while it
// runs.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/integration/daemon/programs.hpp"

using namespace ka;
using policy::CpuSet;
using std::chrono::steady_clock;
using tests::DaemonScene;
using tests::Program;

namespace {

namespace fs = std::filesystem;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int kBirths = 40;
constexpr auto kTimeout = std::chrono::seconds(5);

bool may_use(int pid, int cpu) {
  cpu_set_t mask;
  return ::sched_getaffinity(pid, sizeof mask, &mask) == 0 &&
         CPU_ISSET(static_cast<std::size_t>(cpu), &mask) != 0;
}

/// A node on which kubelet has given its last CPU to another pod.
struct Scene : DaemonScene {
  Scene() : DaemonScene("") {
    configure("drift_check = 3600\nkubelet_state = \"" + path("cpu_manager_state").string() +
              "\"\n");
    const CpuSet all = tests::allowed(static_cast<int>(::getpid()));
    foreign = all.ids().back();
    std::ofstream(path("cpu_manager_state"))
        << R"({"policyName":"static","defaultCpuSet":")"
        << policy::format_list(all - CpuSet{foreign}) << R"(","entries":{"other":{"app":")"
        << foreign << R"("}}})";
    fs::create_directories(path("bin"));
    for (const char* name : {"containerd-shim-kata-v2", "containerd-shim-runc-v2"}) {
      fs::copy_file("/bin/dash", path("bin") / name);
    }
    fs::create_directories(tasks());
    start();
    // Bundles of before are those of sandboxes that run.
    REQUIRE(tests::eventually([this] { return log().find("ready socket=") != std::string::npos; }));
  }

  fs::path tasks() const { return path("containerd/io.containerd.runtime.v2.task/k8s.io"); }

  /// containerd's part: the bundle, with the annotations of its CRI.
  fs::path make_bundle(const std::string& id) const {
    const fs::path bundle = tasks() / id;
    fs::create_directories(bundle);
    std::ofstream(bundle / "config.json")
        << R"({"annotations":{"io.kubernetes.cri.container-type":"sandbox",)"
        << R"("io.kubernetes.cri.sandbox-uid":"uid-)" << id
        << R"(","io.kubernetes.cri.sandbox-name":"cart","io.kubernetes.cri.sandbox-namespace":"shop"}})";
    return bundle;
  }

  /// A shim that does nothing, with a command line like that of a shim.
  std::unique_ptr<Program> start_shim(const std::string& program, const std::string& id) const {
    return std::make_unique<Program>(
        std::vector<std::string>{(path("bin") / program).string(), "-c", "kill -STOP $$", "sh",
                                 "-namespace", "k8s.io", "-id", id},
        path("shim.log"));
  }

  /// The shim's part in its `start`.
  static void leave_pid(const fs::path& bundle, int pid) {
    std::ofstream(bundle / ".shim.pid") << pid;
    fs::rename(bundle / ".shim.pid", bundle / "shim.pid");
  }

  /// From before its fork until it may not use the other pod's CPU; the limit when it still may.
  Milliseconds birth(const std::string& id, bool leaves_pid) {
    const fs::path bundle = make_bundle(id);
    const auto before = steady_clock::now();
    const auto shim = start_shim("containerd-shim-kata-v2", id);
    if (leaves_pid) leave_pid(bundle, shim->pid());
    while (may_use(shim->pid(), foreign) && steady_clock::now() - before < kTimeout) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    const Milliseconds elapsed = steady_clock::now() - before;
    if (elapsed < kTimeout) CHECK(tests::eventually([&] { return narrowed() > counted_; }));
    counted_ = narrowed();
    // What was not found is found by Kata's own folder.
    fs::create_directories(path("vc/sbs") / id);
    CHECK(tests::eventually([&] { return !may_use(shim->pid(), foreign); }));
    fs::remove_all(path("vc/sbs") / id);
    fs::remove_all(bundle);
    return elapsed;
  }

  double narrowed() const { return metric("kata_affinity_shim_narrowed_seconds_count"); }

  int foreign = 0;

 private:
  double counted_ = 0;
};

void print(const char* what, std::vector<Milliseconds> elapsed) {
  std::ranges::sort(elapsed);
  const auto at = [&](double part) {
    return elapsed[static_cast<std::size_t>(part * static_cast<double>(elapsed.size() - 1))]
        .count();
  };
  std::printf(
      "%s: shims narrowed after their start, of %zu: p50 %.1f ms, p99 %.1f ms, max %.1f ms\n", what,
      elapsed.size(), at(0.5), at(0.99), at(1));
}

std::vector<Milliseconds> births(Scene& scene, const std::string& prefix, bool leaves_pid) {
  std::vector<Milliseconds> elapsed;
  for (int i = 0; i < kBirths; ++i) {
    elapsed.push_back(scene.birth(prefix + std::to_string(i), leaves_pid));
  }
  return elapsed;
}

}  // namespace

TEST_CASE("a shim leaves another pod's CPU before Kata has created its directory") {
  if (!tests::has_two_cpus()) return;
  Scene scene;
  for (const bool leaves_pid : {true, false}) {
    const auto elapsed = births(scene, leaves_pid ? "a" : "b", leaves_pid);
    print(leaves_pid ? "with shim.pid" : "by its command line", elapsed);
    CHECK(std::ranges::none_of(elapsed, [](const auto& t) { return t >= kTimeout; }));
  }
  CHECK(scene.narrowed() == 2 * kBirths);
}

TEST_CASE("the shim of another runtime is left alone") {
  if (!tests::has_two_cpus()) return;
  Scene scene;
  const fs::path bundle = scene.make_bundle("r1");
  const auto runc = scene.start_shim("containerd-shim-runc-v2", "r1");
  Scene::leave_pid(bundle, runc->pid());
  scene.birth("s1", true);
  CHECK(may_use(runc->pid(), scene.foreign));
  CHECK(scene.narrowed() == 1);
}
