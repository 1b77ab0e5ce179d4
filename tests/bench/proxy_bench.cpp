// SPDX-License-Identifier: Apache-2.0
// What the shim proxy costs a call: round trips to a shim that answers at once, without a proxy,
// through a bare splice of two sockets, and through the proxy; in turns, in one run, on the same
// machine.
//
//   proxy_bench           prints the figures; exits with 1 when a call through the proxy takes more
//                         than 1.5 times what it takes through the bare splice, the better one
//
// The largest messages are recorded, not judged: how long four mebibytes take is up to the
// machine's other work and to how the build was optimised. Compared are the best rounds, which
// other work on the machine disturbed least, and the medians of all calls; only when both are too
// slow is it the proxy that is slow.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "base/rpc/message.hpp"
#include "base/unix_socket.hpp"
#include "shim-ext/proto/task.pb.h"
#include "shim-ext/proxy/relay.hpp"
#include "shim-ext/proxy/socket.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using std::chrono::steady_clock;

namespace {

constexpr int kRounds = 25;
constexpr double kMost = 1.5;

void block(const base::Fd& fd) { ::fcntl(fd.get(), F_SETFL, 0); }

base::Fd accept_from(const base::Fd& listener) {
  return base::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

/// Puts this process on the first or the last of the machine's CPUs: where the kernel wakes whom
/// would decide over the figures otherwise.
void stay_on(bool last) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(last ? static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)) - 1 : 0, &cpus);
  ::sched_setaffinity(0, sizeof(cpus), &cpus);
}

/// A process of its own, ended with this. What stands between containerd and the shim has another
/// CPU than they.
class Process {
 public:
  Process(bool between, const std::function<void()>& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    stay_on(between);
    work();
    ::_exit(0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }

 private:
  int pid_;
};

/// The shim: says back each frame once it has all of it.
void echo(const base::Fd& client) {
  std::vector<char> block(std::size_t{256} << 10);
  ttrpc::Decoder decoder;
  for (;;) {
    const ssize_t got = ::recv(client.get(), block.data(), block.size(), 0);
    if (got <= 0) return;
    decoder.feed({block.data(), static_cast<std::size_t>(got)});
    while (const auto frame = decoder.next()) {
      const auto& header = frame->header;
      send_all(client.get(), ttrpc::encode(header.stream, ttrpc::kResponse, 0, frame->data));
    }
  }
}

void be_shim(const base::Fd& listener) {
  block(listener);
  std::vector<std::thread> threads;
  while (base::Fd client = accept_from(listener)) {
    threads.emplace_back([fd = std::move(client)] { echo(fd); });
  }
}

/// One block from one socket to another: read and written, or by splice(2) through a pipe.
class Mover {
 public:
  explicit Mover(bool by_splice) : by_splice_(by_splice) {
    if (::pipe2(pipe_.data(), O_CLOEXEC) != 0) ::_exit(2);
  }
  bool move(int from, int to) { return by_splice_ ? splice(from, to) : copy(from, to); }

 private:
  bool copy(int from, int to) {
    const ssize_t got = ::recv(from, block_.data(), block_.size(), 0);
    return got > 0 && send_all(to, {block_.data(), static_cast<std::size_t>(got)});
  }
  bool splice(int from, int to) {
    ssize_t left = ::splice(from, nullptr, pipe_[1], nullptr, block_.size(), SPLICE_F_MOVE);
    if (left <= 0) return false;
    while (left > 0) {
      const ssize_t put =
          ::splice(pipe_[0], nullptr, to, nullptr, static_cast<std::size_t>(left), SPLICE_F_MOVE);
      if (put <= 0) return false;
      left -= put;
    }
    return true;
  }

  bool by_splice_;
  std::array<int, 2> pipe_{};
  std::array<char, std::size_t{64} << 10> block_{};
};

/// The bare splice: two sockets, nothing else.
void be_bare(const base::Fd& listener, const std::string& shim_path, bool by_splice) {
  block(listener);
  const base::Fd client = accept_from(listener);
  const base::Fd shim = std::move(*proxy::connect_to(shim_path));
  block(shim);
  const base::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {client.get(), shim.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  }
  Mover mover(by_splice);
  std::array<epoll_event, 2> events{};
  for (;;) {
    const int count = ::epoll_wait(epoll.get(), events.data(), 2, -1);
    for (int i = 0; i < count; ++i) {
      const int from = events[static_cast<std::size_t>(i)].data.fd;
      if (!mover.move(from, from == client.get() ? shim.get() : client.get())) return;
    }
  }
}

void be_proxy(base::Fd listener, const std::string& shim_path) {
  const base::Clock clock;
  proxy::Relay relay(clock,
                     {std::move(listener), std::move(*proxy::connect_to(shim_path)), shim_path},
                     "/nonexistent/api.sock", "/nonexistent", proxy::SharedPool({}));
  relay.run();
}

double microseconds(steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// One call and its answer. Large ones are written while they are read.
double round_trip(int fd, const std::string& request, std::vector<char>& block) {
  const auto begin = steady_clock::now();
  std::thread writer;
  if (request.size() > 65536) {
    writer = std::thread([&] { send_all(fd, request); });
  } else {
    send_all(fd, request);
  }
  for (std::size_t got = 0; got < request.size();) {
    const ssize_t part = ::recv(fd, block.data(), block.size(), 0);
    if (part <= 0) ::_exit(2);
    got += static_cast<std::size_t>(part);
  }
  if (writer.joinable()) writer.join();
  return microseconds(steady_clock::now() - begin);
}

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

std::string call(const std::string& method, std::size_t size) {
  proto::task::UpdateRequest message;
  message.set_id("c1");
  message.mutable_resources()->set_value(std::string(size, ' '));
  return *rpc::encode_request(
      1, {"containerd.task.v2.Task", method, message.SerializeAsString(), {}, {}});
}

struct Way {
  const char* name;
  base::Fd client;
  std::vector<double> all{};
  double best = 0;  ///< of the rounds' medians

  void add(const std::vector<double>& round) {
    const double median = percentile(round, 0.5);
    best = all.empty() ? median : std::min(best, median);
    all.insert(all.end(), round.begin(), round.end());
  }
};

/// How many times longer a call takes the last way than the best of those between it and the first.
double measure(std::vector<Way>& ways, const char* what, const std::string& request, int calls) {
  std::vector<char> block(std::size_t{256} << 10);
  for (Way& way : ways) way.all.clear();
  for (int round = 0; round < kRounds; ++round) {
    for (Way& way : ways) {
      std::vector<double> times;
      for (int i = 0; i < calls; ++i) {
        times.push_back(round_trip(way.client.get(), request, block));
      }
      way.add(times);
    }
  }
  std::printf("%s, %zu bytes each way, %d calls\n", what, request.size(), kRounds * calls);
  for (const Way& way : ways) {
    std::printf("  %-22s best round %8.1f us   p50 %8.1f us   p99 %8.1f us\n", way.name, way.best,
                percentile(way.all, 0.5), percentile(way.all, 0.99));
  }
  const auto ratio = [&](auto figure) {
    return figure(ways[3]) / std::min(figure(ways[1]), figure(ways[2]));
  };
  const double best = ratio([](const Way& way) { return way.best; });
  const double median = ratio([](const Way& way) { return percentile(way.all, 0.5); });
  std::printf("  proxy / better bare splice: best round %.2f, p50 %.2f\n", best, median);
  return std::min(best, median);
}

void print_memory(int pid) {
  const auto text = base::read_file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (const char* key : {"Private_Clean:", "Private_Dirty:"}) {
    const auto at = text ? text->find(key) : std::string::npos;
    if (at == std::string::npos) continue;
    std::printf("  %s\n", text->substr(at, text->find('\n', at) - at).c_str());
  }
}

base::Fd client_of(const std::string& path) {
  base::Fd fd = std::move(*proxy::connect_to(path));
  block(fd);
  return fd;
}

}  // namespace

int main() {
  const tests::TempDir dir;
  const auto path = [&](const char* name) { return (dir.path() / name).string(); };
  const auto listen = [&](const char* name) { return std::move(*base::listen_unix(path(name))); };
  base::Fd at_shim = listen("shim"), at_copy = listen("copy"), at_splice = listen("splice"),
           at_proxy = listen("proxy");
  const Process shim(false, [&] { be_shim(at_shim); });
  const Process copy(true, [&] { be_bare(at_copy, path("shim"), false); });
  const Process splice(true, [&] { be_bare(at_splice, path("shim"), true); });
  const Process relay(true, [&] { be_proxy(std::move(at_proxy), path("shim")); });
  stay_on(false);
  std::vector<Way> ways;
  ways.push_back({"no proxy", client_of(path("shim"))});
  ways.push_back({"bare: recv and send", client_of(path("copy"))});
  ways.push_back({"bare: splice(2)", client_of(path("splice"))});
  ways.push_back({"proxy", client_of(path("proxy"))});
  const double state = measure(ways, "State", call("State", 20), 500);
  const double update = measure(ways, "Update", call("Update", 400), 500);
  measure(ways, "Large", call("Exec", (4U << 20) - 1000), 3);
  std::printf("memory of the proxy afterwards\n");
  print_memory(relay.pid());
  return std::max(state, update) <= kMost ? 0 : 1;
}
