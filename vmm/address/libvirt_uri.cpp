// SPDX-License-Identifier: Apache-2.0
#include "vmm/address/libvirt_uri.hpp"

#include <string>

namespace ka::vmm {
namespace {

auto refuse(std::string_view uri, const char* why) {
  return base::fail(base::ErrorCode::kInvalid, '"' + std::string(uri) + "\" " + why);
}

}  // namespace

base::Result<void> check_libvirt_uri(std::string_view uri) {
  constexpr std::string_view kMark = "://";
  const std::size_t mark = uri.find(kMark);
  if (mark == std::string_view::npos || mark == 0) {
    return refuse(uri, "is not a libvirt URI like \"qemu:///system\"");
  }
  const std::string_view scheme = uri.substr(0, mark);
  const std::size_t plus = scheme.find('+');
  if (plus != std::string_view::npos && scheme.substr(plus + 1) != "unix") {
    return refuse(uri, "may lead to another machine: only local unix sockets are allowed");
  }
  if (!uri.substr(mark + kMark.size()).starts_with('/')) {
    return refuse(uri, "names a host: domains of another machine have other CPUs");
  }
  return {};
}

}  // namespace ka::vmm
