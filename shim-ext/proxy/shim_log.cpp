// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/shim_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>

#include "base/fd.hpp"

namespace ka::proxy {

void write_shim_log(const std::string& text) {
  const base::Fd log(::open("log", O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return;
  const std::string line =
      "level=warning msg=" + boost::json::serialize(boost::json::string("kata-affinity: " + text)) +
      '\n';
  if (::write(log.get(), line.data(), line.size()) < 0) return;
}

}  // namespace ka::proxy
