// SPDX-License-Identifier: Apache-2.0
// What a VMM's command line reveals of how its guest was started.
#pragma once

#include <string>
#include <vector>

#include "policy/plan/guest_numbers.hpp"

namespace ka::guest {

/// QEMU's -smp and -kernel, Cloud Hypervisor's --cpus and --kernel, Firecracker's name. A kernel's
/// release is taken from the name of its file ("vmlinux-6.12.36-157", as Kata installs them) or
/// read from the image.
policy::plan::BootFacts boot_facts(const std::vector<std::string>& command_line);

/// The kernel's image that the command line names; empty where it names none.
std::string kernel_of(const std::vector<std::string>& command_line);

/// The initrd and the read-only images that the command line names, with ',' between; but for those
/// below /run, which are one VM's own.
std::string image_of(const std::vector<std::string>& command_line);

}  // namespace ka::guest
