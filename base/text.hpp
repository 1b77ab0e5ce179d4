// SPDX-License-Identifier: Apache-2.0
// Text from outside: names of threads, pods, containers and domains, annotations, peers' messages.
// Its author may be hostile. It is sanitized here, where it enters, and is then safe
// everywhere: in JSON, on a terminal, in a log, in metrics, in a picture, in a state file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ka::base {

/// The longest id of a sandbox or container, in bytes (containerd: 76).
inline constexpr std::size_t kMaxId = 128;
/// The longest name that is kept, in bytes (Kubernetes: 317 for "namespace/pod").
inline constexpr std::size_t kMaxName = 512;
/// The longest path (PATH_MAX).
inline constexpr std::size_t kMaxPath = 4096;
/// The longest message of a peer that is kept, in bytes.
inline constexpr std::size_t kMaxSentence = 1024;

/// `raw` as valid UTF-8 of at most `limit` bytes (at least 3) without characters that a reader
/// cannot see or that change what a terminal shows. Such a character becomes \xNN where it is ASCII
/// or no UTF-8 at all (then byte by byte), else \u{NNNN}: controls (C0, DEL, C1), line and
/// paragraph separators, what Unicode calls default ignorable, noncharacters. A backslash stays,
/// so that printable(printable(x)) == printable(x). What is cut off ends in "...".
std::string printable(std::string_view raw, std::size_t limit = kMaxName);

/// True for text that printable() leaves as it is.
bool is_printable(std::string_view text, std::size_t limit = kMaxName);

/// Ids of sandboxes and containers: 1 to kMaxId of [A-Za-z0-9_.-], as containerd and CRI-O give
/// them, and not "." or "..". They become parts of paths, of URLs and of file names.
bool is_id(std::string_view text);

}  // namespace ka::base
