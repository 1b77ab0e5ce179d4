// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/serve.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>

#include "shim-ext/proxy/relay.hpp"
#include "shim-ext/proxy/socket.hpp"

namespace ka::proxy {
namespace {

constexpr int kFirstFree = 3;

// The proxy ends only with the shim: containerd would take its end for the shim's.
void ignore_signals() {
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGTERM}) ::signal(signal, SIG_IGN);
}

// containerd reads the output of `start` until every process has closed it.
void let_go_of_standard_streams() {
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), stream);
}

/// Closes all but the standard streams and the two, which are moved.
void keep_only(base::Fd& listener, base::Fd& guard) {
  const int a = ::fcntl(listener.get(), F_DUPFD_CLOEXEC, kFirstFree + 2);
  const int b = ::fcntl(guard.get(), F_DUPFD_CLOEXEC, kFirstFree + 2);
  ::dup3(a, kFirstFree, O_CLOEXEC);
  ::dup3(b, kFirstFree + 1, O_CLOEXEC);
  ::close_range(kFirstFree + 2, ~0U, 0);
  (void)listener.release();
  (void)guard.release();
  listener.reset(kFirstFree);
  guard.reset(kFirstFree + 1);
}

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

[[noreturn]] void serve(const base::Clock& clock, const Place& place, base::Fd listener,
                        base::Fd guard) {
  ::setsid();
  listen_in_own_name(listener);
  ignore_signals();
  let_go_of_standard_streams();
  keep_only(listener, guard);
  raise_file_limit();
  ::malloc_trim(0);
  const FileId own = file_id(place.own_path);
  const FileId shim = file_id(place.shim_path);
  const std::filesystem::path bundle = std::filesystem::current_path();
  const auto relay = std::make_unique<Relay>(
      clock, Relay::Sockets{std::move(listener), std::move(guard), place.shim_path},
      place.api_socket, bundle.parent_path(), place.pool);
  relay->run();
  remove_socket(place.own_path, own);
  // A shim that is killed leaves its socket; one that ends well removes what "address" names.
  remove_socket(place.shim_path, shim);
  ::_exit(0);
}

}  // namespace

base::Result<void> serve_in_background(const base::Clock& clock, const Place& place,
                                       base::Fd listener, base::Fd guard) {
  const int pid = ::fork();
  if (pid < 0) return base::fail_errno(errno, "fork");
  if (pid == 0) serve(clock, place, std::move(listener), std::move(guard));
  return {};
}

}  // namespace ka::proxy
