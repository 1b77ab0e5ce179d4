// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/show_affinity.hpp"

#include "guest-agent/agent/files.hpp"

namespace ka::agent {

bool show_affinity(const Roots& roots, std::FILE* out) {
  const auto status = read_text(roots.proc / "1/status");
  const auto cpuinfo = read_text(roots.proc / "cpuinfo");
  if (!status || !cpuinfo) return false;
  return std::fprintf(out, "%s\n%s\n", status->c_str(), cpuinfo->c_str()) >= 0 &&
         std::fflush(out) == 0;
}

}  // namespace ka::agent
