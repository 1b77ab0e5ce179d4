// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/start.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/files.hpp"
#include "base/text.hpp"
#include "base/unix_socket.hpp"
#include "shim-ext/proxy/answer.hpp"
#include "shim-ext/proxy/program.hpp"
#include "shim-ext/proxy/serve.hpp"
#include "shim-ext/proxy/shim_log.hpp"
#include "shim-ext/proxy/socket.hpp"

namespace ka::proxy {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

/// The real shim's address in what containerd reads when it starts again, in place of which it is
/// to find ours: "address" (until 2.0), and bootstrap.json where the shim itself wrote one.
Result<void> rename_files(const std::string& own, const std::string& other) {
  for (const char* file : {"address", "bootstrap.json"}) {
    const auto text = base::read_regular_file(file);
    if (!text || address_in(*text) != own) continue;
    const auto written = base::write_atomically(file, with_address(*text, other));
    if (!written) return written;
  }
  return {};
}

// A killed proxy leaves a socket on which no process listens.
Result<base::Fd> listen_anew(const std::string& path) {
  auto listener = base::listen_unix(path);
  if (listener || listener.error().code != ErrorCode::kConflict) return listener;
  ::unlink(path.c_str());
  return base::listen_unix(path);
}

Result<void> serve(const base::Clock& clock, const std::string& shim, const std::string& own,
                   const Settings& settings, const SharedPool& pool) {
  auto guard = connect_to(shim);
  if (!guard) return unexpected(guard.error());
  auto listener = listen_anew(own);
  if (!listener) return unexpected(listener.error());
  const Place place{own, shim, settings.api_socket, pool};
  auto begun = serve_in_background(clock, place, std::move(*listener), std::move(*guard));
  if (!begun) ::unlink(own.c_str());
  return begun;
}

/// The answer that names the proxy.
Result<std::string> put_proxy_before(const base::Clock& clock, const std::string& answer,
                                     const Settings& settings, const SharedPool& pool) {
  const auto address = address_in(answer);
  if (!address) return fail(ErrorCode::kInvalid, "the real shim's response has no address");
  const auto shim = socket_path(*address);
  if (!shim)
    return fail(ErrorCode::kInvalid,
                base::printable(*address) + " is not the address of a unix socket");
  const auto own = proxy_path(*shim);
  if (!own) return fail(ErrorCode::kInvalid, *shim + " is too long to add the proxy's name");
  if (!is_served(*own, "/proc")) {
    if (auto served = serve(clock, *shim, *own, settings, pool); !served)
      return unexpected(served.error());
  }
  const std::string other = unix_address(*own);
  if (auto renamed = rename_files(*address, other); !renamed) return unexpected(renamed.error());
  return with_address(answer, other);
}

int print(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t put = ::write(STDOUT_FILENO, text.data() + at, text.size() - at);
    if (put < 0 && errno != EINTR) return 1;
    if (put > 0) at += static_cast<std::size_t>(put);
  }
  return 0;
}

}  // namespace

int start(const base::Clock& clock, const std::string& program,
          const std::vector<std::string>& arguments, const Settings& settings, SharedPool& pool) {
  const auto ran = run(program, arguments);
  // Where that fails, our mask holds no CPU of another pod: the relay tries again.
  (void)pool.confine();
  if (!ran) {
    std::fprintf(stderr, "%s\n", ran.error().message.c_str());
    return 1;
  }
  if (ran->status != 0) {
    print(ran->output);
    end_like(ran->status);
  }
  if (!settings.input_error.empty()) write_shim_log(settings.input_error);
  const auto answer = put_proxy_before(clock, ran->output, settings, pool);
  if (answer) return print(*answer);
  write_shim_log("proxy not in use, containerd is connected to the real shim: " +
                 answer.error().message);
  return print(ran->output);
}

}  // namespace ka::proxy
