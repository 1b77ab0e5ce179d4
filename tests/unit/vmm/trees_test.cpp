// SPDX-License-Identifier: Apache-2.0
// VMMs that are not here to be started, as trees that were written by hand (tests/data/vmm).
#include <fstream>
#include <set>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/unit/vmm/fixture.hpp"

using namespace ka;
using ka::tests::FakeNode;
using ka::tests::Roles;
using ka::tests::roles;
using ka::tests::roots_of;

namespace {

struct Tree {
  FakeNode node;
  int vmm = 0;
  Roles expected;
  std::set<int> strangers;
};

/// What is left of a line, without the blank before it.
std::string rest_of(std::istringstream& line) {
  std::string text;
  std::getline(line >> std::ws, text);
  return text;
}

void read_line(Tree& tree, const std::string& text, bool with_debugfs) {
  std::istringstream line(text);
  std::string word, name;
  int a = 0, b = 0;
  line >> word;
  if (word == "process") {
    line >> a >> b >> name;
    tree.node.process(a, b, rest_of(line), name);
  } else if (word == "thread") {
    line >> a >> b;
    tree.node.thread(a, b, rest_of(line));
  } else if (word == "fd") {
    line >> a >> b;
    tree.node.fd(a, b, rest_of(line));
  } else if (word == "kvm") {
    line >> name >> a >> b;
    if (with_debugfs) tree.node.kvm_vcpu(name, a, b);
  } else if (word == "vmm") {
    line >> tree.vmm;
  } else if (word == "role") {
    line >> a;
    tree.expected[a] = rest_of(line);
  } else if (word == "stranger") {
    line >> a;
    tree.strangers.insert(a);
  } else {
    FAIL("a line that means nothing: " << text);
  }
}

void read_tree(Tree& tree, const std::string& vmm, bool with_debugfs) {
  std::ifstream in(std::string(KA_SOURCE_DIR) + "/tests/data/vmm/" + vmm + ".tree");
  REQUIRE(in);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('#')) read_line(tree, line, with_debugfs);
  }
}

}  // namespace

TEST_CASE("every VMM that Kata starts is identified, by debugfs and by names alone") {
  const std::string vmm =
      GENERATE("cloud-hypervisor", "firecracker", "dragonball", "stratovirt", "openvmm");
  const bool with_debugfs = GENERATE(true, false);
  Tree tree;
  read_tree(tree, vmm, with_debugfs);
  CAPTURE(vmm, with_debugfs);
  const auto process = vmm::examine(roots_of(tree.node), tree.vmm, vmm::Word::kRuntime);
  REQUIRE(process);
  REQUIRE(process->is_vmm);
  const auto found =
      tests::discover(roots_of(tree.node), {.vmm = process->id, .cgroup = {}}, nullptr);
  REQUIRE(found);
  CHECK(roles(*found) == tree.expected);
  CHECK(found->conflicts.empty());
  CHECK(found->complete);
  CHECK(found->vcpu_source.starts_with(with_debugfs ? "kvm-debugfs" : "thread-names"));
  for (const auto& thread : found->threads) CHECK_FALSE(tree.strangers.contains(thread.key.tid));
}
