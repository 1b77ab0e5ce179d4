// SPDX-License-Identifier: Apache-2.0
// Which libvirt may be asked: the one of this node.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace ka::vmm {

/// Refuses (kInvalid) a connection URI that leads, or may lead, to another machine: one that names
/// a host, or a transport other than a unix socket. Domains of another machine run on other CPUs
/// than ours. Good are "qemu:///system", "qemu+unix:///system?socket=/run/...", "test:///default".
/// (https://libvirt.org/uri.html; an alias of libvirt's client configuration has no scheme.)
base::Result<void> check_libvirt_uri(std::string_view uri);

}  // namespace ka::vmm
