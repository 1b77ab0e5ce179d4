// SPDX-License-Identifier: Apache-2.0
// The daemon gives containers their CPUs itself: the runtime's end of NRI is played here, with runc
// pods and a real VMM, whose masks are read from /proc.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/catch.hpp"
#include "tests/integration/daemon/programs.hpp"
#include "tests/nri_runtime.hpp"
#include "tests/text.hpp"

using namespace ka;
using policy::CpuSet;
using tests::contains;
using tests::DaemonScene;
using tests::eventually;

namespace {

namespace wire = proto::nri;

constexpr std::int64_t kPeriod = 100000;

/// "c1 0, c2 1": what an answer changes, by container.
template <typename Response>
std::map<std::string, std::string> updates_in(const Response& response) {
  std::map<std::string, std::string> all;
  for (const auto& update : response.update()) {
    all[update.container_id()] = update.linux().resources().cpu().cpus();
  }
  return all;
}

struct Scene : DaemonScene {
  explicit Scene(const std::string& more = "", const std::string& nri_version = "")
      : DaemonScene(""), runtime(path("nri.sock").string()) {
    runtime.nri_version = nri_version;
    configure(
        "mode = \"managed\"\ndrift_check = 3600\nhousekeeping = \"shared-pool\"\n"
        "nri_socket = \"" +
        path("nri.sock").string() + "\"\nkubelet_state = \"" + path("cpu_manager_state").string() +
        "\"\n" + more);
    start();
    runtime.accept();
  }

  /// A container of a Guaranteed pod; `cpus` 0 is half a CPU.
  wire::ContainerRequest container(const std::string& id, int cpus, int pid = ::getpid()) const {
    wire::ContainerRequest request;
    auto* pod = request.mutable_pod();
    pod->set_id("s-" + id);
    pod->set_uid("uid-" + id);
    pod->set_name(id);
    pod->set_namespace_("shop");
    pod->set_runtime_handler(pid == ::getpid() ? "runc" : "kata");
    pod->set_pid(static_cast<std::uint32_t>(pid));
    pod->mutable_linux()->set_cgroup_parent("kubepods-poduid.slice");
    auto* made = request.mutable_container();
    made->set_id(id);
    made->set_pod_sandbox_id("s-" + id);
    made->set_name("app");
    auto* cpu = made->mutable_linux()->mutable_resources()->mutable_cpu();
    cpu->mutable_quota()->set_value(cpus == 0 ? kPeriod / 2 : cpus * kPeriod);
    cpu->mutable_period()->set_value(kPeriod);
    return request;
  }

  template <typename Response>
  Response answer() const {
    Response response;
    CHECK(runtime.answer().code == rpc::Code::kOk);
    REQUIRE(response.ParseFromString(runtime.answer().payload));
    return response;
  }

  /// The CPUs that it is created with.
  std::string create(const wire::ContainerRequest& request) {
    runtime.call("CreateContainer", request);
    return answer<wire::CreateContainerResponse>().adjust().linux().resources().cpu().cpus();
  }

  std::map<std::string, std::string> stop(const wire::ContainerRequest& request) {
    runtime.call("StopContainer", request);
    return updates_in(answer<wire::StopContainerResponse>());
  }

  tests::NriRuntime runtime;
  CpuSet all =
      policy::parse_list<policy::CpuTag>(tests::read_text("/sys/devices/system/cpu/online"))
          .value();
};

}  // namespace

TEST_CASE("a container of whole CPUs gets its own, and all others leave them in the same answer") {
  if (!tests::has_two_cpus()) return;
  Scene scene;
  CHECK(scene.create(scene.container("free", 0)) == policy::format_list(scene.all));
  const CpuSet own =
      policy::parse_list<policy::CpuTag>(scene.create(scene.container("own", 1))).value();
  CHECK(own.size() == 1);
  const auto changed = updates_in(scene.answer<wire::CreateContainerResponse>());
  CHECK(changed ==
        std::map<std::string, std::string>{{"free", policy::format_list(scene.all - own)}});
  CHECK(contains(scene.raw("GET /v1/pools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                 "\"exclusive\":\"" + policy::format_list(own) + '"'));
  CHECK(scene.stop(scene.container("own", 1)) ==
        std::map<std::string, std::string>{{"free", policy::format_list(scene.all)}});
  CHECK(contains(scene.log(), "kind=class-changed"));
}

TEST_CASE("killed at any moment, the next daemon knows each answer and collects what ended") {
  if (!tests::has_two_cpus()) return;
  Scene scene;
  scene.create(scene.container("free", 0));
  const std::string own = scene.create(scene.container("own", 1));
  scene.daemon().send(9);
  CHECK(scene.daemon().wait() == 128 + 9);
  scene.runtime.hang_up();
  scene.start();
  const auto listed = [&](const std::string& id, int cpus, const std::string& set) {
    auto one = scene.container(id, cpus).container();
    one.mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus(set);
    return one;
  };
  wire::SynchronizeRequest here;
  for (const char* id : {"free", "own", "new"}) *here.add_pods() = scene.container(id, 0).pod();
  const std::string rest =
      policy::format_list(scene.all - policy::parse_list<policy::CpuTag>(own).value());
  *here.add_containers() = listed("free", 0, rest);
  *here.add_containers() = listed("own", 1, own);
  *here.add_containers() = listed("new", 0, "");
  scene.runtime.accept({here});
  CHECK(updates_in(scene.answer<wire::SynchronizeResponse>()) ==
        std::map<std::string, std::string>{{"new", rest}});
  CHECK(eventually([&] { return contains(scene.log(), "kind=container-adopted"); }));
  // And what is not there any more is free.
  scene.runtime.hang_up();
  wire::SynchronizeRequest fewer;
  *fewer.add_pods() = scene.container("free", 0).pod();
  *fewer.add_containers() = listed("free", 0, rest);
  scene.runtime.accept({fewer});
  CHECK(updates_in(scene.answer<wire::SynchronizeResponse>()) ==
        std::map<std::string, std::string>{{"free", policy::format_list(scene.all)}});
}

TEST_CASE("a VM's threads leave CPUs that a container owns before it is created") {
  if (!tests::Vm::possible()) return;
  Scene scene;
  const tests::Vm vm(scene.path("").parent_path(), 2);
  const auto pod = scene.container("vm", 0, vm.pid());
  wire::PodRequest run;
  *run.mutable_pod() = pod.pod();
  scene.runtime.call("RunPodSandbox", run);
  scene.create(pod);
  scene.runtime.call("StartContainer", pod);
  scene.runtime.call("PostStartContainer", pod);
  const CpuSet own =
      policy::parse_list<policy::CpuTag>(scene.create(scene.container("own", 1))).value();
  for (const auto& [name, tid] : vm.threads()) {
    INFO(name);
    CHECK_FALSE(tests::allowed(tid).intersects(own));
  }
  scene.stop(scene.container("own", 1));
  CHECK(eventually([&] { return tests::allowed(vm.pid()).intersects(own); }));
}

TEST_CASE("a pod's manifest is tried: where it would run, whom it would move, or why not") {
  if (!tests::has_two_cpus()) return;
  Scene scene("");
  const std::string all = scene.create(scene.container("half", 0));
  const auto manifest = [](int cpus) {
    return R"({"kind":"Pod","metadata":{"namespace":"shop","name":"cart"},"spec":{"containers":[)"
           R"({"name":"app","resources":{"limits":{"memory":"1Mi","cpu":)" +
           std::to_string(cpus) + "}}}]}}";
  };
  const tests::TempDir dir;
  dir.write("one.json", manifest(1));
  dir.write("many.json", manifest(5000));
  const auto fits = scene.ctl({"plan", "--pod", dir.path() / "one.json"});
  CHECK(fits.exit == 0);
  CHECK(contains(fits.out, "fits\n\n"));
  CHECK(contains(fits.out, "shop/cart  app        exclusive  exclusive  "));
  CHECK(contains(fits.out, "  shop/half app: " + all + " -> "));
  const auto large = scene.ctl({"plan", "--pod", dir.path() / "many.json"});
  CHECK(large.exit == 1);
  CHECK(contains(large.out, "! not-enough: 5000 CPUs requested"));
  CHECK(contains(scene.ctl({"pools"}).out, "exclusive  -"));
}

TEST_CASE("before the change of mode the daemon says which containers would move") {
  if (!tests::has_two_cpus()) return;
  Scene scene;
  CHECK(contains(scene.ctl({"plan", "--managed"}).out, "already"));
  scene.runtime.hang_up();
  scene.configure("drift_check = 3600\nnri_socket = \"" + scene.path("nri.sock").string() +
                  "\"\nkubelet_state = \"\"\n");
  scene.daemon().send(15);
  CHECK(scene.daemon().wait() == 0);
  scene.start();
  wire::SynchronizeRequest here;
  auto own = scene.container("own", 1);
  const CpuSet last{scene.all.last()};
  const std::string owned = policy::format_list(last);
  own.mutable_container()->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus(owned);
  *here.add_pods() = own.pod();
  *here.add_containers() = own.container();
  *here.add_pods() = scene.container("free", 0).pod();
  *here.add_containers() = scene.container("free", 0).container();
  scene.runtime.accept({here});
  CHECK(updates_in(scene.answer<wire::SynchronizeResponse>()).empty());
  const auto plan = scene.ctl({"plan", "--managed"});
  CHECK(plan.exit == 0);
  CHECK(contains(plan.out, "shop/own   app        exclusive  exclusive  " + owned));
  CHECK(contains(plan.out, "  shop/free app: " + policy::format_list(scene.all) + " -> " +
                               policy::format_list(scene.all - last) + '\n'));
  CHECK_FALSE(contains(plan.out, "shop/own app: "));
}

TEST_CASE("the features of the node are written for NFD, in this mode with the pools") {
  if (!tests::has_two_cpus()) return;
  Scene scene;
  scene.create(scene.container("own", 1));
  const std::string all = std::to_string(scene.all.size() - 1);
  const std::string file = scene.path("features").string();
  const auto shown = scene.ctl({"discover"});
  CHECK(shown.exit == 0);
  CHECK(contains(shown.out, "kata-affinity.io/mode=managed\n"));
  CHECK(contains(shown.out, "kata-affinity.io/cpus-exclusive=1\n"));
  CHECK(contains(shown.out, "kata-affinity.io/cpus-shared=" + all + '\n'));
  CHECK(scene.ctl({"discover", "--valid-for", "3m", "--output", file}).exit == 0);
  const std::string written = tests::read_text(file);
  CHECK(written.starts_with("# +expiry-time=20"));
  CHECK(written.substr(written.find('\n') + 1) == shown.out);
  CHECK(scene.ctl({"discover", "--output", "/none/features"}).exit == 2);
  // A daemon that waits for its sources writes nothing that it does not know.
  scene.daemon().send(15);
  scene.daemon().wait();
  scene.runtime.hang_up();
  scene.start();
  const auto early = scene.ctl({"discover"});
  CHECK(early.exit == 1);
  CHECK(contains(early.out, "still waits for its sources"));
}

TEST_CASE("a pod's class is changed while it runs, and one that cannot be is refused") {
  if (!tests::has_two_cpus()) return;
  Scene scene("managed.guaranteed_class = \"none\"\n");
  CHECK(scene.create(scene.container("a", 1)) == policy::format_list(scene.all));
  scene.create(scene.container("half", 0));
  const auto put = [&](const std::string& pod, const std::string& body) {
    return scene.raw("PUT /v1/classes/" + pod +
                     " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  CHECK(contains(put("s-a", R"({"class":"exclusive"})"), "\"pool\":\"exclusive\""));
  CHECK(contains(put("s-half", R"({"class":"exclusive"})"), "not a number of whole CPUs"));
  CHECK(contains(put("s-none", R"({"class":"exclusive"})"), "404"));
  CHECK(contains(put("s-a", R"({"class":"best"})"), "400"));
  const auto no = scene.ctl({"class", "shop/half/app", "exclusive"});
  CHECK(no.exit == 1);
  CHECK(contains(no.out, "nothing changed: container app of shop/half: its CPU limit is not"));
  CHECK(scene.ctl({"class", "nobody", "share"}).exit == 2);
  const auto shared = scene.ctl({"class", "shop/a", "share"});
  CHECK(shared.exit == 0);
  CHECK(contains(shared.out, "shop/a  app        share  shared  "));
  CHECK(contains(scene.ctl({"pools"}).out, "exclusive  -"));
  CHECK(contains(scene.ctl({"node-report"}).out, "owners   passed"));
  CHECK(scene.ctl({"class", "a", "exclusive"}).exit == 0);
  // The runtime learns of it with the next answer.
  scene.create(scene.container("next", 0));
  const auto changed = updates_in(scene.answer<wire::CreateContainerResponse>());
  CHECK(changed.contains("a"));
  CHECK(changed.contains("half"));
}

TEST_CASE("a runtime that can be asked at any time changes containers with their class") {
  if (!tests::has_two_cpus()) return;
  Scene scene("managed.guaranteed_class = \"none\"\n", "v0.12.1");
  scene.create(scene.container("a", 1));
  scene.create(scene.container("half", 0));
  CHECK(contains(scene.ctl({"status"}).out, "also between its calls"));
  CHECK(scene.ctl({"class", "shop/a", "exclusive"}).exit == 0);
  auto changed = updates_in(scene.runtime.requested());
  const CpuSet own = policy::parse_list<policy::CpuTag>(changed.at("a")).value();
  CHECK(own.size() == 1);
  CHECK(changed.at("half") == policy::format_list(scene.all - own));
  CHECK(scene.ctl({"class", "shop/a", "none"}).exit == 0);
  changed = updates_in(scene.runtime.requested());
  CHECK(changed.at("a") == policy::format_list(scene.all));
  CHECK(changed.at("half") == policy::format_list(scene.all));
}

TEST_CASE("a container that cannot have its class runs in the shared pool, or is refused") {
  if (!tests::has_two_cpus()) return;
  {
    Scene scene;
    const auto greedy = [&] {
      auto request = scene.container("greedy", 1);
      (*request.mutable_pod()->mutable_annotations())["qos.gocrane.io/cpu-manager"] = "share";
      return request;
    };
    CHECK(scene.create(greedy()) == policy::format_list(scene.all));
    CHECK(contains(scene.log(), "pods may not choose the class of its annotation"));
    CHECK(scene.metric("kata_affinity_class_problems_total{problem=\"not-allowed\"}") == 1);
  }
  Scene scene("managed.on_failure = \"refuse\"\n");
  scene.runtime.call("CreateContainer", scene.container("many", 9000));
  CHECK(scene.runtime.answer().code != rpc::Code::kOk);
  CHECK(contains(scene.runtime.answer().message, "CPUs requested"));
}

TEST_CASE("the daemon does not start beside kubelet's static policy, and says why") {
  DaemonScene scene("mode = \"managed\"\n");
  scene.configure("mode = \"managed\"\nnri_socket = \"/none\"\nkubelet_state = \"" +
                  scene.path("cpu_manager_state").string() + "\"\n");
  std::ofstream(scene.path("cpu_manager_state"))
      << R"({"policyName":"static","defaultCpuSet":"0-1","entries":{},"checksum":1})";
  const auto ended = tests::run(scene.command(), scene.path("out"));
  CHECK(ended.exit == 2);
  CHECK(contains(ended.out, "kubelet's CPU manager policy is static"));
  scene.configure("mode = \"managed\"\n");
  CHECK(contains(tests::run(scene.command(), scene.path("out")).out, "needs nri_socket"));
  scene.configure("mode = \"managed\"\nnri_socket = \"/none\"\nmanaged.min_shared = 8000\n");
  CHECK(contains(tests::run(scene.command(), scene.path("out")).out, "[affinity.managed]: "));
}

TEST_CASE("the daemon does not start beside another plugin that gives CPUs, and names it") {
  DaemonScene scene("mode = \"managed\"\n");
  scene.configure("mode = \"managed\"\nnri_socket = \"" + scene.path("nri.sock").string() +
                  "\"\nkubelet_state = \"" + scene.path("cpu_manager_state").string() + "\"\n");
  const auto program = scene.path("koordlet");
  std::filesystem::copy_file("/usr/bin/sleep", program);
  const pid_t plugin = ::fork();
  if (plugin == 0) {
    ::execl(program.c_str(), "koordlet", "600", nullptr);
    ::_exit(1);
  }
  const std::string name = "koordlet (pid " + std::to_string(plugin) + ")";
  CHECK(eventually([&] {
    const auto ended = tests::run(scene.command(), scene.path("out"));
    return ended.exit == 2 &&
           contains(ended.out, name + " gives containers their CPUs through NRI");
  }));
  ::kill(plugin, SIGKILL);
  ::waitpid(plugin, nullptr, 0);
  scene.start();
}
