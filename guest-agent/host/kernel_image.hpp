// SPDX-License-Identifier: Apache-2.0
// Which Linux a kernel image holds: the file that a VMM's command line names, read on the host.
#pragma once

#include <filesystem>
#include <string>

namespace ka::guest {

/// The release ("6.12.36") of a kernel image: of a bzImage by its header (Documentation/arch/x86/
/// boot.rst, kernel_version), of an ELF file by its banner ("Linux version 6.12.36 ",
/// init/version.c) in the first 64 MiB. Links are followed, nothing but a regular file is opened.
/// Empty where it cannot be read or is neither.
std::string kernel_release(const std::filesystem::path& image);

}  // namespace ka::guest
