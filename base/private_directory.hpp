// SPDX-License-Identifier: Apache-2.0
// Directories and files only their owner may write: the next start trusts their content.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace ka::base {

/// Makes a directory for its owner only where it is missing. One that others can write is closed to
/// them: then the answer is true, and what is in it may be theirs. kPermission when it belongs to
/// another user than root and us.
Result<bool> make_private_directory(const std::filesystem::path& path);

/// Closes a file in such a directory to writers but its owner: then the answer is true, and its
/// content may be theirs. kInvalid when it, or the link to it, belongs to another user than root
/// and us: then its content is. What a link leads to, and what is no regular file, stays as it is.
Result<bool> make_private_file(const std::filesystem::path& path);

}  // namespace ka::base
