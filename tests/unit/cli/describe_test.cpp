// SPDX-License-Identifier: Apache-2.0
// What people read: whole texts, as they appear.
#include "affinity/cli/status/describe.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <sstream>

#include "affinity/cli/control/outcome.hpp"
#include "affinity/cli/map/map_text.hpp"
#include "affinity/cli/terminal/screen.hpp"

#include "tests/catch.hpp"

using namespace ka;
using boost::json::parse;

namespace {

constexpr const char* kSandbox = R"({
  "id":"s1", "pod_name":"shop/cart", "mask":"0-1,4-5", "mems":"0", "vmm_pid":100, "drift":1,
  "released":false,
  "vcpus":[{"index":0,"role":"floating"},{"index":1,"role":"dedicated","container":"c1"},
           {"index":2,"role":"dedicated","container":"c1"}],
  "threads":[
    {"tid":100,"role":"emulator","name":"qemu","wanted":"0-1","actual":"0-1","drift":false},
    {"tid":101,"role":"iothread","name":"io1","wanted":"0-1","actual":"0-1","drift":false},
    {"tid":102,"role":"emulator","name":"rcu","wanted":"0-1","actual":"0-1","drift":false},
    {"tid":110,"role":"vcpu","vcpu":0,"wanted":"0-1","actual":"0-1","drift":false},
    {"tid":112,"role":"vcpu","vcpu":2,"wanted":"5","actual":"0-7","drift":true},
    {"tid":111,"role":"vcpu","vcpu":1,"wanted":"4","actual":"4","drift":false},
    {"tid":120,"role":"shim","wanted":"","actual":"0-7","problem":"EPERM"}],
  "containers":[{"id":"c1","name":"app","cpus":"4-5","exclusive":true,"vcpus":"1-2",
                 "dedicated":true},
                {"id":"c2","cpus":"","exclusive":false,"vcpus":"0","exited":true}],
  "warnings":["not isolated: CPU 4 also carries housekeeping"],
  "conflicts":["qmp and kvm-debugfs disagree"], "unknown_threads":["thread 130 \"foo\" is unknown"]})";

constexpr const char* kSandboxText =
    R"(sandbox s1 (shop/cart): mask 0-1,4-5, mems 0, VMM 100, 1 thread NOT as planned, 1 thread CANNOT be placed
  THREAD        TID        WANTED      ACTUAL
  vCPU 0        110        0-1         0-1         floating
  vCPU 1        111        4           4           dedicated to c1
  vCPU 2        112        5           0-7         <- not as planned
  iothread io1  101        0-1         0-1
  emulator      100 +1     0-1         0-1
  shim          120        -           0-7         <- EPERM
  container c1 (app): CPUs 4-5 exclusive, vCPUs 1-2 dedicated
  container c2: no cpuset, vCPU 0, exited
  ! not isolated: CPU 4 also carries housekeeping
  ? qmp and kvm-debugfs disagree
  ? thread 130 "foo" is unknown
)";

}  // namespace

TEST_CASE("status of a sandbox is one readable table", "[cli]") {
  CHECK(cli::describe_sandbox(parse(kSandbox)) == kSandboxText);
}

TEST_CASE("status names resource classes, and what they come to", "[cli]") {
  const auto sandbox = parse(R"({"id":"s1","mask":"4","mems":"0","vmm_pid":100,"classes":{
    "requests":[
      {"container":"c1","kind":"scheduling-class","name":"gold","granted":true},
      {"container":"c1","kind":"blockioclass","name":"gold","granted":false,"text":"why"}],
    "nice":[{"vcpu":0,"wanted":null,"actual":0,"drift":false},
            {"vcpu":1,"wanted":-5,"actual":-5,"drift":false},
            {"vcpu":2,"wanted":-5,"actual":3,"drift":true,"problem":"EACCES"}],
    "io_weight":{"wanted":300,"actual":null,"drift":true},
    "io_max":[{"disk":"8:0","wanted":"rbps=1","actual":"rbps=max","drift":true,"problem":"no disk"},
              {"disk":"8:16","wanted":"wbps=2","actual":"wbps=2","drift":false}],
    "rdt":[{"vcpu":1,"wanted":"gold","drift":false},
           {"vcpu":2,"wanted":"gold","drift":true,"problem":"resctrl is not mounted"}]}})");
  const std::string text = cli::describe_sandbox(sandbox);
  CHECK(text.find("VMM 100, 4 class values NOT set\n") != std::string::npos);
  CHECK(text.find("  class: container c1 has scheduling-class gold\n"
                  "  class: container c1 does NOT have blockioclass gold: why\n"
                  "  vCPU 1: nice -5\n"
                  "  vCPU 2: nice -5 NOT set, it is 3: EACCES\n"
                  "  block I/O weight: 300 NOT set, it is unknown\n"
                  "  block I/O of disk 8:0: rbps=1 NOT set, it is rbps=max: no disk\n"
                  "  block I/O of disk 8:16: wbps=2\n"
                  "  vCPU 1: rdtclass gold\n"
                  "  vCPU 2: rdtclass gold NOT set: resctrl is not mounted\n") !=
        std::string::npos);
}

TEST_CASE("status shows devices and where their interrupts go", "[cli]") {
  const std::string text =
      cli::describe_sandbox(parse(R"({"id":"s1", "interrupt_drift":1, "devices":[
    {"id":"0000:01:00.0","interrupts":[
      {"number":45,"actual":"2-3","wanted":"2-3","drift":false},
      {"number":46,"actual":"0-7","wanted":"2-3","drift":true},
      {"number":47,"actual":"2-3","wanted":"2-3","drift":false},
      {"number":48,"actual":"0","wanted":"2-3","drift":false,"problem":"cannot be moved"}]},
    {"id":"0000:02:00.0","interrupts":[]}]})"));
  CHECK(text.find("VMM 0, 1 interrupt NOT as planned\n"
                  "  device 0000:01:00.0: 2 interrupts on CPUs 2-3\n"
                  "  device 0000:01:00.0: 1 interrupt on CPUs 0-7  <- wanted on 2-3\n"
                  "  device 0000:01:00.0: 1 interrupt on CPU 0  <- cannot be moved\n"
                  "  device 0000:02:00.0: no interrupts\n") != std::string::npos);
}

TEST_CASE("status says degraded, why, and what takes it away", "[cli]") {
  const std::string text = cli::describe_sandbox(parse(R"({"id":"s1","containers":[
      {"id":"c1","cpus":"2-3","exclusive":true,"isolated":false,"obstacles":[
        {"reason":"housekeeping","text":"emulator may run on CPU 2","remedy":"set x"}]},
      {"id":"c2","cpus":"4","exclusive":true,"isolated":true,"obstacles":[]}]})"));
  CHECK(text.find("  container c1: CPUs 2-3 exclusive\n"
                  "    ! degraded: emulator may run on CPU 2\n"
                  "      -> set x\n"
                  "  container c2: CPU 4 exclusive, isolated\n") != std::string::npos);
}

TEST_CASE("status shows the grade, or why it is not reached", "[cli]") {
  const auto shows = [](const char* fields, const char* line) {
    return cli::describe_sandbox(parse(fields)).find(line) != std::string::npos;
  };
  CHECK(shows(R"({"id":"s1","grade":"quiet","grade_problem":""})", "\n  grade: quiet\n"));
  CHECK(shows(R"({"id":"s1","grade":"best-effort","grade_problem":"no helper"})",
              "\n  grade: NOT quiet: no helper\n"));
  CHECK(shows(R"({"id":"s1","grade":"quiet","grade_problem":"not allowed"})",
              "\n  grade: quiet: not allowed\n"));
  CHECK(shows(R"({"id":"s1","grade":"realtime","grade_problem":""})", "\n  grade: realtime\n"));
  CHECK(shows(R"({"id":"s1","grade":"quiet","grade_problem":"not realtime: no limit"})",
              "\n  grade: quiet: not realtime: no limit\n"));
  CHECK(
      shows(R"({"id":"s1","partition":{"cpus":"2-3","problem":""}})", "\n  partition: CPUs 2-3\n"));
  CHECK(shows(R"({"id":"s1","partition":{"cpus":"2-3","problem":"no room"}})",
              "\n  partition: none: no room\n"));
  CHECK_FALSE(shows(R"({"id":"s1","partition":null})", "partition"));
  CHECK_FALSE(shows(R"({"id":"s1","grade":"best-effort","grade_problem":""})", "grade"));
}

TEST_CASE("status and map show the grade of pods without a VM", "[cli]") {
  const auto list = parse(R"({"sandboxes":[],"pods":[
    {"id":"r1","pod_name":"shop/till","cpus":"2-3","grade":"quiet","grade_problem":"",
     "partition":{"cpus":"2-3","problem":""}},
    {"id":"r3","pod_name":"","cpus":"5","grade":"quiet","grade_problem":"",
     "partition":{"cpus":"5","problem":"older kernel"}},
    {"id":"r2","pod_name":"","cpus":"4","grade":"best-effort","grade_problem":"no helper"}]})");
  const std::string lines =
      "pod shop/till (no VM), CPUs 2-3: grade: quiet, in a cpuset partition\n"
      "pod r3 (no VM), CPUs 5: grade: quiet, no cpuset partition: older kernel\n"
      "pod r2 (no VM), CPUs 4: grade: NOT quiet: no helper\n";
  CHECK(cli::describe_sandboxes(list) == "no VM sandboxes\n" + lines);
  CHECK(cli::describe_overview(list, 80, false).ends_with(lines));
  const std::string map = cli::describe_node(parse(R"({"cpus":[
      {"cpu":2,"owners":[{"pod":"r1","pod_name":"shop/till","container":"c1","vm":false}]},
      {"cpu":4,"owners":[{"pod":"r2","container":"c2","vm":false}]}],
    "pods":[{"id":"r1","grade":"quiet","grade_problem":""},
            {"id":"r2","grade":"best-effort","grade_problem":"no helper"}]})"));
  CHECK(map.find("shop/till, container c1 (no VM), quiet\n") != std::string::npos);
  CHECK(map.find("r2, container c2 (no VM), NOT quiet: no helper\n") != std::string::npos);
}

TEST_CASE("the map ends with what is not known of its owners") {
  const std::string map = cli::describe_node(
      parse(R"({"shared_pool":"0-1","cpus":[],"start":{"warnings":["a file cannot be read"]}})"));
  CHECK(map.ends_with("! a file cannot be read\n"));
}

TEST_CASE("status shows what pods request of CRI-O's annotations, and where it is in force") {
  const std::string lines = cli::describe_tuned(parse(R"({"tuned":[
    {"pod":"s1","pod_name":"shop/cart","container":"c1","name":"app","cpus":"3,5",
     "annotation":"irq-load-balancing.crio.io","value":"housekeeping","problem":""},
    {"pod":"s2","pod_name":"","container":"c2","name":"","cpus":"",
     "annotation":"irq-load-balancing.crio.io","value":"housekeeping","problem":""},
    {"pod":"s2","pod_name":"","container":"c2","name":"","cpus":"4",
     "annotation":"cpu-c-states.crio.io","value":"disable","problem":"no file"}]})"));
  CHECK(lines ==
        "container app of pod shop/cart: irq-load-balancing.crio.io: housekeeping on CPUs 3,5\n"
        "container c2 of pod s2: irq-load-balancing.crio.io: housekeeping on no CPU\n"
        "container c2 of pod s2: cpu-c-states.crio.io: disable NOT in force: no file\n");
}

TEST_CASE("status shows when nothing is written", "[cli]") {
  const auto first_line = [](const char* fields) {
    const std::string text = cli::describe_sandbox(parse(fields));
    return text.substr(0, text.find('\n'));
  };
  CHECK(
      first_line(R"({"id":"s1","vmm_pid":7,"drift":2,"observed":true})") ==
      "sandbox s1: mask -, mems -, VMM 7, 2 threads NOT as planned (observe: nothing is written)");
  CHECK(first_line(R"({"id":"s1","vmm_pid":7,"drift":0,"observed":true,"released":true})") ==
        "sandbox s1: mask -, mems -, VMM 7, released");
}

TEST_CASE("status of all sandboxes lists them one after another", "[cli]") {
  CHECK(cli::describe_sandboxes(parse(R"({"sandboxes":[]})")) == "no VM sandboxes\n");
  CHECK(
      cli::describe_sandboxes(parse(R"({"sandboxes":[], "contests":[{"text":"CPU 4 is a's"}]})")) ==
      "no VM sandboxes\n! CPU 4 is a's\n");
  CHECK(cli::describe_sandboxes(
            parse(R"({"sandboxes":[], "start":{"warnings":["s1.json is damaged"]}})")) ==
        "no VM sandboxes known\n! s1.json is damaged\n");
  const std::string two = std::string(R"({"sandboxes":[)") + kSandbox + ',' + kSandbox + "]}";
  CHECK(cli::describe_sandboxes(parse(two)) == std::string(kSandboxText) + '\n' + kSandboxText);
}

TEST_CASE("fields missing from another daemon version are not a failure", "[cli]") {
  for (const char* text : {"{}", R"({"threads":3,"containers":[1,null],"vcpus":{},"drift":"x"})",
                           R"({"sandboxes":[{}],"cpus":[{}],"topology":{"cpus":[{}]}})"}) {
    CAPTURE(text);
    const auto document = parse(text);
    CHECK_FALSE(cli::describe_sandbox(document).empty());
    CHECK_FALSE(cli::describe_sandboxes(document).empty());
    CHECK_FALSE(cli::describe_reasons(document).empty());
    CHECK_FALSE(cli::describe_report(document).empty());
    CHECK_FALSE(cli::describe_outcome(document).empty());
    CHECK_FALSE(cli::describe_event(document).empty());
    CHECK_FALSE(cli::describe_node(document).empty());
  }
}

TEST_CASE("explain prints sentences with their sources", "[cli]") {
  CHECK(cli::describe_reasons(parse(R"({"id":"s1",
      "facts":[{"text":"VMM is process 100","source":"api"}],
      "rules":[{"code":"floating","text":"1 vCPU floats on CPUs 0-1"}],
      "results":["vCPU 0 floats on CPUs 0-1"],
      "warnings":[{"code":"not-isolated","text":"not isolated: CPU 4"}]})")) ==
        "sandbox s1\n"
        "Facts [source]\n"
        "  - VMM is process 100 [api]\n"
        "Rules applied\n"
        "  - 1 vCPU floats on CPUs 0-1\n"
        "Result\n"
        "  - vCPU 0 floats on CPUs 0-1\n"
        "Warnings\n"
        "  ! not isolated: CPU 4\n");
}

TEST_CASE("verify starts with its verdict and how much was read", "[cli]") {
  CHECK(cli::describe_report(parse(R"({"verdict":"ok","ok":true,
      "seen":{"sandboxes":1,"threads":7},"known":{"sandboxes":1,"threads":7},"findings":[]})")) ==
        "ok: 7 of 7 threads in 1 of 1 sandbox read, no violation found\n");
  CHECK(cli::describe_report(parse(R"({"verdict":"ok","ok":true,"released":1,
      "seen":{"sandboxes":2,"threads":9},"known":{"sandboxes":2,"threads":9},"findings":[]})")) ==
        "ok: 9 of 9 threads in 2 of 2 sandboxes read (1 released, not checked), no violation "
        "found\n");
  CHECK(cli::describe_report(parse(R"({"verdict":"violated","ok":false,
      "seen":{"sandboxes":1,"threads":9},"known":{"sandboxes":2,"threads":11},"findings":[
      {"severity":"violated","invariant":"I4","sandbox":"s1","text":"emulator may run on CPU 4"},
      {"severity":"unknown","invariant":"unread","sandbox":"s2","text":"cannot read its VMM"},
      {"severity":"degraded","invariant":"I8","sandbox":"s1","text":"too few vCPUs",
       "remedy":"raise default_maxvcpus"}]})")) ==
        "violated: 9 of 11 threads in 1 of 2 sandboxes read, 3 findings\n"
        "  violated  I4        s1: emulator may run on CPU 4\n"
        "  unknown   unread    s2: cannot read its VMM\n"
        "  degraded  I8        s1: too few vCPUs\n"
        "            -> raise default_maxvcpus\n");
}

TEST_CASE("notes of verify are not findings", "[cli]") {
  CHECK(cli::describe_report(parse(R"({"verdict":"ok","ok":true,
      "seen":{"sandboxes":1,"threads":2},"known":{"sandboxes":1,"threads":2},"findings":[
      {"severity":"note","invariant":"guest","sandbox":"s1","text":"it was not looked at"}]})")) ==
        "ok: 2 of 2 threads in 1 of 1 sandbox read, no violation found, 1 note\n"
        "  note      guest     s1: it was not looked at\n");
}

TEST_CASE("verify reports a node without sandboxes", "[cli]") {
  CHECK(cli::describe_report(parse(R"({"verdict":"ok","ok":true,
      "seen":{"sandboxes":0,"threads":0},"known":{"sandboxes":0,"threads":0},"findings":[]})")) ==
        "ok: 0 of 0 threads in 0 of 0 sandboxes read, no sandbox is known\n");
}

TEST_CASE("a change prints what it did", "[cli]") {
  CHECK(cli::describe_outcome(parse(R"({"planned":1,"writes":5,"failed":0})")) ==
        "1 sandbox planned, 5 threads moved\n");
  CHECK(cli::describe_outcome(parse(R"({"planned":2,"writes":3,"failed":1})")) ==
        "2 sandboxes planned, 2 threads moved, 1 thread could not be placed (see status)\n");
}

TEST_CASE("the map shows owners as letters", "[cli]") {
  CHECK(cli::describe_node(parse(R"({"shared_pool":"0,2","cpus":[
      {"cpu":0,"owners":[],"vcpus":[],"threads":{"emulator":2,"vcpu":1}},
      {"cpu":1,"owners":[{"pod":"s1","pod_name":"shop/cart","container":"c1","name":"app",
                          "vm":true,"isolated":false,"obstacles":"housekeeping"}],
       "vcpus":[{"sandbox":"s1","vcpu":3,"container":"c1"}],"threads":{"vcpu":1}},
      {"cpu":2,"owners":[],"vcpus":[],"threads":{"emulator":2,"vcpu":1}},
      {"cpu":3,"owners":[{"pod":"p2","container":"x","vm":false}],"vcpus":[],"threads":{}}],
    "topology":{"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0,"l3":0},
                        {"cpu":1,"core":1,"socket":0,"numa":0,"l3":0},
                        {"cpu":2,"core":0,"socket":0,"numa":0,"l3":0},
                        {"cpu":3,"core":2,"socket":1,"numa":1,"l3":1},
                        {"cpu":4,"core":3,"socket":1,"numa":1,"l3":1,"online":false}]}})")) ==
        "[0 1] is a core with its CPUs. A letter names the owner of a CPU (see below);\n"
        "CPUs without one are in the shared pool. !: two owners. x: offline.\n"
        "\n"
        "socket 0\n"
        "  node 0\n"
        "    L3 0: [0 2] [1B]\n"
        "socket 1\n"
        "  node 1\n"
        "    L3 1: [3A]  [4x]\n"
        "\n"
        "  -   0,2           shared pool\n"
        "  A   3             p2, container x (no VM)\n"
        "  B   1             shop/cart, container app (VM), NOT isolated: housekeeping\n"
        "                    vCPU 3 on 1\n"
        "\n"
        "sandbox threads that may run on each CPU\n"
        "      0,2           2 emulator, 1 vCPU\n"
        "      1             1 vCPU\n");
}

TEST_CASE("map shows what of the host stays on quiet CPUs, or why it does not leave them",
          "[cli]") {
  const auto host_of = [](const std::string& quiet) {
    const std::string text =
        cli::describe_node(parse(R"({"shared_pool":"0","cpus":[],"quiet":)" + quiet + '}'));
    const auto at = text.find("\nthe host");
    return at == std::string::npos ? "" : text.substr(at + 1);
  };
  CHECK(host_of(R"({"wanted":"","cpus":null,"kinds":[],"problem":"no socket"})").empty());
  CHECK(host_of(R"({"wanted":"4-5","cpus":"4-5","kinds":[],"problem":""})") ==
        "the host keeps off CPUs 4-5; there may still run\n"
        "      -             nothing\n");
  CHECK(host_of(R"({"wanted":"4-5","cpus":"4-5","kinds":[{"kind":"interrupt","left_total":3,
                    "left":[{"name":"24","cpus":"4","why":"managed"}]}],"problem":""})") ==
        "the host keeps off CPUs 4-5; there may still run\n"
        "      4             interrupt 24: managed\n"
        "      -             interrupt: 2 more\n");
  CHECK(host_of(R"({"wanted":"4-5","cpus":null,"kinds":[],"problem":"no socket"})") ==
        "the host does NOT keep off CPUs 4-5\n"
        "      4-5           no socket\n");
}

namespace {

/// A node with a vCPU on CPU 1 that is interrupted `slices` times in 10 s.
std::string interrupted_node(int slices) {
  return R"({"shared_pool":"0","cpus":[{"cpu":0,"owners":[],"vcpus":[],"threads":{}},
      {"cpu":1,"owners":[{"pod":"s1","pod_name":"shop/cart","container":"c1","name":"app",
                          "vm":true}],"vcpus":[],"threads":{}}],
    "interruptions":{"problem":"","cpus":[{"cpu":1,"vcpu":2,"sandbox":"s1","pod_name":"shop/cart",
      "seconds":10.0,"nanoseconds":3400000,"interrupts":0,"slices":)" +
         std::to_string(slices) + R"(}]},
    "topology":{"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0,"l3":0},
                        {"cpu":1,"core":1,"socket":0,"numa":0,"l3":0}]}})";
}

}  // namespace

TEST_CASE("the map shows where others run on the CPUs of dedicated vCPUs", "[cli]") {
  const auto text = [](int slices) { return cli::describe_node(parse(interrupted_node(slices))); };
  CHECK(text(0).find("others on CPUs") == std::string::npos);
  CHECK(text(9).find("[1A]\n") != std::string::npos);
  CHECK(text(10).find("[1A+]\n") != std::string::npos);
  CHECK(text(999).find("[1A+]\n") != std::string::npos);
  CHECK(text(1000).find("[1A*]\n") != std::string::npos);
  CHECK(text(10).ends_with(
      "\nothers on CPUs of dedicated vCPUs (+: once a second or more, *: 100 times)\n"
      "      1             10 times, 3.4 ms in 10 s\n"));
}

TEST_CASE("status sums up what interrupted a sandbox's dedicated vCPUs", "[cli]") {
  const auto text = [](const std::string& interruptions) {
    return cli::describe_sandbox(
        parse(R"({"id":"s1","vcpus":[{"index":1,"role":"dedicated"}],"interruptions":)" +
              interruptions + "}"));
  };
  CHECK(
      text(R"({"problem":"","cpus":[
      {"cpu":4,"vcpu":1,"seconds":120.4,"slices":12,"nanoseconds":3000000,"interrupts":5},
      {"cpu":5,"vcpu":2,"seconds":60,"slices":2,"nanoseconds":500000,"interrupts":0,
       "passed_through":3}]})")
          .find("  interruptions: 14 times, 3.5 ms, 5 device interrupts in 120 s, and 3 interrupts "
                "of passed-through devices; most on CPU 4 (vCPU 1), 12 times\n") !=
      std::string::npos);
  CHECK(text(R"({"problem":"","cpus":[{"cpu":4,"vcpu":1,"seconds":0,"slices":0}]})")
            .find("  interruptions: counted from now on\n") != std::string::npos);
  CHECK(text(R"({"problem":"no counters","cpus":[]})")
            .find("  interruptions: not counted: no counters\n") != std::string::npos);
  CHECK(cli::describe_sandbox(parse(R"({"id":"s1"})")).find("interruptions") == std::string::npos);
}

TEST_CASE("the map names CPUs of pods that the runtime has not reported", "[cli]") {
  const std::string text = cli::describe_node(parse(R"({"shared_pool":"0","cpus":[
      {"cpu":0,"owners":[],"vcpus":[],"threads":{}},
      {"cpu":1,"owners":[{"pod":"u1","pod_name":"","container":"app","name":"app","vm":false,
                          "reported":false}],"vcpus":[],"threads":{}}],
    "topology":{"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0,"l3":0},
                        {"cpu":1,"core":1,"socket":0,"numa":0,"l3":0}]}})"));
  CHECK(text.find("[0]  [1A]") != std::string::npos);
  CHECK(text.find("  A   1             pod u1, container app (not reported by the runtime yet)") !=
        std::string::npos);
}

namespace {

/// A node of 2 sockets with 64 CPUs each, half of them owned by pods with long names.
std::string big_node() {
  std::string cpus, places;
  for (int i = 0; i < 128; ++i) {
    const std::string number = std::to_string(i);
    const std::string owner = R"({"pod":"p)" + number + R"(","pod_name":"namespace/)" +
                              std::string(40, 'x') + number + R"(","container":"c","vm":true})";
    cpus += (i == 0 ? "" : ",") + (R"({"cpu":)" + number) + R"(,"owners":[)" +
            (i % 2 == 0 ? owner : "") + R"(],"vcpus":[],"threads":{"vcpu":)" + number + "}}";
    places += (i == 0 ? "" : ",") + (R"({"cpu":)" + number) + R"(,"core":)" +
              std::to_string(i / 2) + R"(,"socket":)" + std::to_string(i / 64) + R"(,"numa":)" +
              std::to_string(i / 32) + "}";
  }
  std::string pool;
  for (int i = 1; i < 128; i += 2) pool += (i == 1 ? "" : ",") + std::to_string(i);
  return R"({"shared_pool":")" + pool + R"(","cpus":[)" + cpus + R"(],"topology":{"cpus":[)" +
         places + "]}}";
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

TEST_CASE("the map is at most 80 columns wide") {
  const std::string text = cli::describe_node(parse(big_node()));
  CHECK(longest_line(text) <= 80);
  CHECK(text.find("[126Q 127]") != std::string::npos);
}

TEST_CASE("the overview has one line per sandbox, and fits 80 columns") {
  std::string list =
      R"({"sources":[{"source":"nri","up":true,"text":"containerd"}],"contests":[{"text":"CPU 4 is a's"}],"sandboxes":[)";
  for (int i = 0; i < 3; ++i) {
    list += (i == 0 ? "" : ",") + (R"({"id":")" + std::string(63, 'a') + std::to_string(i)) +
            R"(","pod_name":"a-long-namespace/a-long-name-of-a-pod-)" + std::to_string(i) +
            R"(","mask":"0-1,4-5,8-9,12-13","vcpus":[{"role":"dedicated"},{"role":"floating"}]})";
  }
  const std::string text = cli::describe_overview(parse(list + "]}"), 80, false);
  CHECK(text.starts_with("SANDBOX       POD"));
  CHECK(text.find(
            "aaaaaaaaaaaa  a-long-n..f-a-pod-2  0-1,4..12-13          1         1  as planned\n") !=
        std::string::npos);
  CHECK(text.find("\n3 sandboxes; ") != std::string::npos);
  CHECK(text.find("! CPU 4 is a's\n+ nri: containerd") != std::string::npos);
  CHECK(longest_line(cli::fit(text, 80)) <= 80);
  CHECK(text.find("DEDICATED:") == std::string::npos);
  CHECK(cli::describe_overview(parse(list + "]}"), 80, true).find("DEDICATED:") !=
        std::string::npos);
}

TEST_CASE("a source that is late is marked, with the reason") {
  CHECK(cli::describe_sources(parse(
            R"({"sources":[{"source":"kubelet","up":true,"text":"static","late":"no watch"}]})")) ==
        "! kubelet: static; read only at each drift check: no watch\n");
}

TEST_CASE("a CPU's explanation names owners, reports with their times, and what is placed there",
          "[cli]") {
  CHECK(cli::describe_cpu(parse(R"({"cpu":4, "state":"exclusive", "in_doubt":true,
    "since":"2026-11-25T18:00:00.000Z",
    "owners":[{"text":"container app of pod shop/cart","basis":"request","in_doubt":true}],
    "reports":[{"source":"kubelet","time":null,"text":"has not reported: no such file",
                "decides":false},
               {"source":"nri","time":"2026-11-25T18:00:01.000Z","decides":true,
                "text":"container app of pod shop/cart may use CPUs 4-5"}],
    "placed":[{"sandbox":"s1","pod_name":"shop/cart","text":"vCPU 1 runs only on CPU 4"}]})")) ==
        "CPU 4: exclusive (in doubt), since 2026-11-25T18:00:00.000Z\n"
        "Owners [by]\n"
        "  - container app of pod shop/cart [request, in doubt]\n"
        "Reports [source, time], * decides\n"
        "  - has not reported: no such file [kubelet, no report since the start]\n"
        "  * container app of pod shop/cart may use CPUs 4-5 [nri, 2026-11-25T18:00:01.000Z]\n"
        "Placed here\n"
        "  - shop/cart: vCPU 1 runs only on CPU 4\n");
  CHECK(cli::describe_cpu(parse(R"({"cpu":0, "state":"shared", "since":null})")) ==
        "CPU 0: shared, since before the daemon's start\n"
        "Owners [by]\n  none\n"
        "Reports [source, time], * decides\n  none\n"
        "Placed here\n  none\n");
}

TEST_CASE("a measurement is a table, and a histogram of each vCPU", "[cli]") {
  const std::string text = cli::describe_latencies(parse(R"({"realtime":true,"vcpus":[
      {"vcpu":1,"cpus":"4","dedicated":true,"samples":60,"p50_us":3.5,"max_us":9,"stolen_us":0,
       "histogram":[[4.1,40],[8.2,19],[16.4,1]]},
      {"vcpu":2,"cpus":"5","samples":0,"histogram":[]}]})"));
  CHECK(text.find("\nvCPU 1, wake-ups that were at most so late:\n"
                  "       4.1 us        40  ########################################\n"
                  "       8.2 us        19  ###################\n"
                  "      16.4 us         1  #\n") != std::string::npos);
  CHECK(text.find("vCPU 2, wake-ups") == std::string::npos);
}
