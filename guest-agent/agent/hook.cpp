// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/hook.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>

#include "base/ttrpc/envelope.hpp"
#include "base/ttrpc/frame.hpp"
#include "base/unix_socket.hpp"
#include "guest-agent/agent/state_text.hpp"
#include "guest-agent/protocol/messages.hpp"

namespace ka::agent {
namespace {

using namespace std::chrono_literals;
using base::Fd;

constexpr std::size_t kMostState = std::size_t{1} << 20;
constexpr auto kStartTime = 5s;   ///< for an agent to begin to listen
constexpr auto kAnswerTime = 3s;  ///< for each part of its answer

int fail(const char* what) {
  std::fprintf(stderr, "kata-affinity-agent: %s\n", what);
  return 1;
}

std::optional<std::string> read_input() {
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || text.size() > kMostState) return std::nullopt;
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

/// A session of its own, and nothing of the hook's: kata-agent waits until its pipes are closed.
void become_agent(const Options& options) {
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  int null = ::open("/dev/null", O_RDWR);
  if (null < 0) null = ::open("/", O_PATH);  // can neither be read nor written, and does as well
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  ::close_range(3, ~0U, 0);
  if (::chdir("/") != 0) ::_exit(1);
  ::_exit(run(options));
}

bool start_agent(const Options& options) {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) become_agent(options);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return true;
}

Fd connect_to_agent(const base::Clock& clock, const Options& options) {
  const auto path = socket_of(options);
  auto fd = base::connect_unix(path, kAnswerTime);
  if (fd) return std::move(*fd);
  if (!is_gone(fd) || !start_agent(options)) return {};
  const auto until = clock.now() + kStartTime;
  while (!(fd = base::connect_unix(path, kAnswerTime)) && clock.now() < until) clock.sleep(10ms);
  return fd ? std::move(*fd) : Fd();
}

/// One call on a new connection; true if it succeeded.
bool send(const Fd& agent, const guest::ContainerNews& news) {
  const std::string bytes =
      ttrpc::write_call(1, {.service = guest::kService,
                            .method = "Hello",
                            .payload = guest::encode(guest::Hello{.program = "hook"})}) +
      ttrpc::write_call(
          3, {.service = guest::kService, .method = "Container", .payload = guest::encode(news)});
  if (::write(agent.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return false;
  }
  ttrpc::Decoder decoder(guest::kMaxMessage);
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = ::read(agent.get(), chunk.data(), chunk.size());
    if (got <= 0) return false;
    decoder.feed({chunk.data(), static_cast<std::size_t>(got)});
    while (const auto frame = decoder.next()) {
      if (frame->header.stream != 3) continue;
      const auto answer = ttrpc::read_answer(frame->data);
      return answer && answer->code == ttrpc::Code::kOk;
    }
  }
}

}  // namespace

std::optional<Hook> hook_named(std::string_view name) {
  if (name == "prestart") return Hook::kPrestart;
  if (name == "poststop") return Hook::kPoststop;
  return std::nullopt;
}

int run_hook(const base::Clock& clock, Hook hook, const Options& options) {
  const auto text = read_input();
  const auto id = text ? id_in_state(*text) : std::nullopt;
  if (!id) return fail("no container state on standard input");
  const Fd agent = connect_to_agent(clock, options);
  if (!agent) return fail("no agent can be reached, and none could be started");
  const guest::ContainerNews news{.id = *id, .stopped = hook == Hook::kPoststop};
  return send(agent, news) ? 0 : fail("no response from the agent");
}

std::filesystem::path socket_of(const Options& options) {
  if (!options.socket.empty()) return options.socket;
  return options.roots.run / "kata-affinity/agent.sock";
}

}  // namespace ka::agent
