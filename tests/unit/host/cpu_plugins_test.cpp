// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cpu_plugins.hpp"

#include <filesystem>
#include <string>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

namespace {

constexpr const char* kNodeMounts =
    "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
    "24 22 0:23 / /run rw - tmpfs tmpfs rw\n";

/// /proc of a node whose NRI socket is /run/nri/nri.sock.
class Node {
 public:
  Node() { dir_.write("proc/self/mountinfo", kNodeMounts); }

  void run(int pid, const std::string& comm, const std::string& mounts, int uid = 0) const {
    const std::string process = "proc/" + std::to_string(pid);
    const std::string number = std::to_string(pid);
    dir_.write(process + "/task/" + number + "/stat",
               number + " (" + comm +
                   ") S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0 0 0 0 0 "
                   "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    const std::string owner = std::to_string(uid);
    dir_.write(process + "/status", "Name:\t" + comm + "\nUid:\t" + owner + "\t" + owner + "\t0\n");
    dir_.write(process + "/mountinfo", mounts);
  }
  /// A file of a process, "self" too, is there and cannot be read.
  void make_unreadable(const std::string& file) const {
    std::filesystem::remove(dir_.path() / "proc" / file);
    std::filesystem::create_directories(dir_.path() / "proc" / file);
  }
  std::string plugins() const {
    return host::running_cpu_plugins(base::ProcFs(dir_.path() / "proc"), "/run/nri/nri.sock");
  }

 private:
  tests::TempDir dir_;
};

}  // namespace

TEST_CASE("plugins that give CPUs are known on the node and in containers") {
  const Node node;
  CHECK(node.plugins().empty());
  node.run(40, "containerd", kNodeMounts);
  node.run(41, "kata-affinity", kNodeMounts);
  CHECK(node.plugins().empty());
  node.run(42, "koordlet", kNodeMounts);
  node.run(43, "nri-resource-po", "90 80 0:23 /nri /var/run/nri rw - tmpfs tmpfs rw\n");
  node.run(44, "10-dracpu", kNodeMounts);
  node.run(45, "10-nri-resource", kNodeMounts);
  const std::string list = node.plugins();
  for (const char* one : {"koordlet (pid 42)", "nri-resource-po (pid 43)", "10-dracpu (pid 44)",
                          "10-nri-resource (pid 45)"}) {
    CHECK(list.find(one) != std::string::npos);
  }
}

TEST_CASE("a container that bears a plugin's name and cannot reach the socket is none") {
  const Node node;
  node.run(42, "dracpu",
           "90 80 0:99 / / rw - overlay overlay rw\n"
           "91 90 0:23 /containerd/io.containerd/resolv.conf /etc/resolv.conf rw - tmpfs tmpfs rw\n"
           "92 90 0:98 / /run rw - tmpfs tmpfs rw\n");
  node.run(43, "koordlet", kNodeMounts, 1000);
  node.run(44, "koordlet-", kNodeMounts);
  node.run(45, "1-dracpu", kNodeMounts);
  node.run(46, "dracpu", "");
  CHECK(node.plugins().empty());
}

TEST_CASE("a plugin whose mounts or owner cannot be read is one, and one that ended is none") {
  const Node node;
  node.run(42, "dracpu", "");
  node.run(43, "koordlet", kNodeMounts, 1000);
  CHECK(node.plugins().empty());
  node.make_unreadable("42/mountinfo");
  CHECK(node.plugins() == "dracpu (pid 42)");
  node.make_unreadable("43/status");
  CHECK(node.plugins().find("koordlet (pid 43)") != std::string::npos);
}

TEST_CASE("where the socket's mount is not known, whatever of root has a plugin's name is one") {
  const Node node;
  node.run(42, "dracpu", "");
  node.run(43, "koordlet", kNodeMounts, 1000);
  node.make_unreadable("self/mountinfo");
  CHECK(node.plugins() == "dracpu (pid 42)");
}
