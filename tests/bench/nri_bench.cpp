// How long a container runtime waits for the daemon's answers, seen from the runtime's side of the
// socket: to an update that takes no CPU from any thread, to one that does, and, to compare, to a
// call that the daemon answers without looking at it.
//
//   nri_bench DAEMON VMM_LIKE [ROUNDS [SANDBOXES]]
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "shim-ext/nri/mux.hpp"
#include "shim-ext/proto/nri.pb.h"
#include "shim-ext/rpc/message.hpp"
#include "shim-ext/ttrpc/frame.hpp"
#include "tests/bench/child.hpp"
#include "tests/temp_dir.hpp"

namespace {

namespace wire = ka::proto::nri;
using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

constexpr double kMost = 100;  // microseconds, p99

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "nri_bench: %s\n", what);
  std::exit(1);
}

/// The runtime's end of one connection. Every call blocks.
class Runtime {
 public:
  explicit Runtime(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 1) != 0) {
      give_up("cannot listen");
    }
  }

  void take_in() {
    fd_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const auto registration = next(ka::nri::kRuntimeLane);
    put(ka::nri::kRuntimeLane, ka::rpc::encode_response(registration.header.stream, {}));
    wire::ConfigureRequest configure;
    configure.set_runtime_name("containerd");
    configure.set_runtime_version("v2.3.0");
    ask("Configure", configure);
    ask("Synchronize", wire::SynchronizeRequest());
  }

  /// Microseconds until the answer is there.
  double ask(const std::string& method, const google::protobuf::MessageLite& message) {
    stream_ += 2;
    const auto frame = ka::rpc::encode_request(
        stream_, {"nri.pkg.api.v1alpha1.Plugin", method, message.SerializeAsString(), {}, {}});
    const auto start = Clock::now();
    put(ka::nri::kPluginLane, *frame);
    next(ka::nri::kPluginLane);
    return Micros(Clock::now() - start).count();
  }

 private:
  void put(std::uint32_t lane, const std::string& frame) const {
    const std::string bytes = ka::nri::mux(lane, frame);
    if (::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      give_up("the daemon left");
    }
  }

  ka::ttrpc::Frame next(std::uint32_t lane) {
    for (;;) {
      auto& decoder = lane == ka::nri::kPluginLane ? plugin_ : runtime_;
      if (auto frame = decoder.next()) return *frame;
      char bytes[65536];
      const ssize_t got = ::read(fd_, bytes, sizeof bytes);
      if (got <= 0) give_up("the daemon left");
      demux_.feed({bytes, static_cast<std::size_t>(got)},
                  [this](std::uint32_t id, std::string_view payload) {
                    (id == ka::nri::kPluginLane ? plugin_ : runtime_).feed(payload);
                  });
    }
  }

  int listener_ = -1;
  int fd_ = -1;
  std::uint32_t stream_ = 1;
  ka::nri::Demux demux_;
  ka::ttrpc::Decoder plugin_, runtime_;
};

wire::UpdateContainerRequest update(const std::string& pod, int pid, const std::string& cpus) {
  wire::UpdateContainerRequest request;
  request.mutable_pod()->set_id(pod);
  request.mutable_pod()->set_uid(pod + "-uid");
  request.mutable_pod()->set_name(pod);
  request.mutable_pod()->set_pid(static_cast<std::uint32_t>(pid));
  request.mutable_container()->set_id(pod + "-app");
  request.mutable_container()->set_name("app");
  request.mutable_container()->set_pod_sandbox_id(pod);
  request.mutable_linux_resources()->mutable_cpu()->set_cpus(cpus);
  return request;
}

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double report(const char* name, const std::vector<double>& times) {
  const double p99 = percentile(times, 0.99);
  std::printf("%-44s median %7.1f us   p99 %7.1f us\n", name, percentile(times, 0.5), p99);
  return p99;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: nri_bench DAEMON VMM_LIKE [ROUNDS [SANDBOXES]]\n", stderr);
    return 2;
  }
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 2000;
  const int sandboxes = argc > 4 ? std::atoi(argv[4]) : 8;
  ::setenv("TMPDIR", "/dev/shm", 1);  // state lies below /run, which is in memory
  const ka::tests::TempDir dir;
  const auto path = [&](const char* name) { return (dir.path() / name).string(); };
  dir.write("affinity.toml", "[affinity]\nlog_level = \"warning\"\nkubelet_state = \"" +
                                 path("kubelet") + "\"\nnri_socket = \"" + path("nri.sock") +
                                 "\"\n");
  Runtime runtime(path("nri.sock"));
  const ka::bench::Child daemon({argv[1], "--config", path("affinity.toml"), "--socket",
                                 path("api.sock"), "--state-dir", path("state")});
  runtime.take_in();
  std::deque<ka::bench::Child> vmms;
  const auto pod = [](int i) { return "pod" + std::to_string(i); };
  for (int i = 0; i < sandboxes; ++i) {
    vmms.emplace_back(std::vector<std::string>{argv[2], "4", "4"}).wait_output();
    runtime.ask("UpdateContainer", update(pod(i), vmms.back().pid(), "0"));
    runtime.ask("PostUpdateContainer", update(pod(i), vmms.back().pid(), "0"));
  }
  std::vector<double> bare, same, runc, wider, narrower;
  const auto told = [&](const std::string& name, int pid, const std::string& cpus) {
    return runtime.ask("UpdateContainer", update(name, pid, cpus));
  };
  const auto afterwards = [&](const std::string& name, int pid, const std::string& cpus) {
    runtime.ask("PostUpdateContainer", update(name, pid, cpus));
    runtime.ask("Shutdown", wire::Empty());  // what follows an answer is done by now
  };
  for (int i = 0; i < rounds; ++i) {
    const int n = i % sandboxes;
    const int pid = vmms[static_cast<std::size_t>(n)].pid();
    bare.push_back(runtime.ask("Shutdown", wire::Empty()));
    same.push_back(told(pod(n), pid, "0"));
    runc.push_back(told("runc", 1, i % 2 == 0 ? "0" : "0-1"));
    wider.push_back(told(pod(n), pid, "0-1"));
    afterwards(pod(n), pid, "0-1");
    narrower.push_back(told(pod(n), pid, "0"));
    afterwards(pod(n), pid, "0");
  }
  std::printf("%d rounds, %d sandboxes of 9 threads\n", rounds, sandboxes);
  report("a call that is not looked at", bare);
  double worst = report("an update that changes nothing", same);
  worst = std::max(worst, report("an update of a runc pod", runc));
  worst = std::max(worst, report("an update that only widens", wider));
  report("an update that narrows, done before the answer", narrower);
  std::printf("what narrows nothing: p99 %.1f us (at most %.0f)\n", worst, kMost);
}
