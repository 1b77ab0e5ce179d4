// SPDX-License-Identifier: Apache-2.0
#include "vmm/address/qmp_socket.hpp"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "base/unix_socket.hpp"

namespace ka::vmm {
namespace {

// Go: virtcontainers/qemu.go (RunVMStoragePath), also below XDG_RUNTIME_DIR when rootless;
// runtime-rs: KATA_PATH; containerd: the runtime v2 task directory.
constexpr std::array<std::string_view, 3> kKatasFolders = {"/vc/vm/", "/run/kata/",
                                                           "/io.containerd.runtime.v2.task/"};

bool is_katas(const std::filesystem::path& socket) {
  if (socket.filename() != "qmp.sock") return false;
  const std::string& text = socket.native();
  return std::ranges::any_of(kKatasFolders, [&text](std::string_view folder) {
    return text.find(folder) != std::string::npos;
  });
}

base::Error katas_own(const std::string& name) {
  return {base::ErrorCode::kInvalid,
          name +
              " is Kata's own QMP socket. QEMU serves one client per socket, and Kata needs it for "
              "the VM's life: give the VM a second monitor socket (extra_monitor_socket)",
          0};
}

}  // namespace

base::Result<void> check_qmp_socket(const std::filesystem::path& socket) {
  const std::string name = socket.string();
  if (!socket.is_absolute()) {
    return base::fail(base::ErrorCode::kInvalid, '"' + name + "\" is not an absolute path");
  }
  if (name.size() >= sizeof(sockaddr_un::sun_path)) {
    return base::fail(base::ErrorCode::kInvalid, name + ": too long for a socket path");
  }
  if (!base::is_printable(name, base::kMaxPath)) {
    return base::fail(base::ErrorCode::kInvalid,
                      base::printable(name) + ": has control characters");
  }
  if (auto good = base::check_is_socket(socket); !good) return good;
  std::error_code unseen;
  const std::filesystem::path real = std::filesystem::weakly_canonical(socket, unseen);
  if (unseen) return base::fail_errno(unseen.value(), name);
  if (is_katas(socket.lexically_normal()) || is_katas(real)) {
    return unexpected(katas_own(name));
  }
  return {};
}

base::Result<void> check_qmp_server(const std::filesystem::path& bound) {
  const std::filesystem::path name = bound.lexically_normal();
  if (is_katas(name)) return unexpected(katas_own(base::printable(name.native(), base::kMaxPath)));
  return {};
}

}  // namespace ka::vmm
