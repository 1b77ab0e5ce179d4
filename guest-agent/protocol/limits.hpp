// SPDX-License-Identifier: Apache-2.0
// Limits on what one end accepts from the other. Anything beyond is an attack or a defect.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ka::guest {

/// The versions of the protocol that this build supports.
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kOldestVersion = 1;

/// Where the agent listens on vsock.
inline constexpr std::uint32_t kPort = 1031;
/// The virtio-serial port's name.
inline constexpr const char* kSerialPort = "org.kata-affinity.agent.0";
inline constexpr const char* kService = "kata_affinity.guest.v1.Agent";

/// The data of one frame.
inline constexpr std::size_t kMaxMessage = std::size_t{512} << 10;
inline constexpr std::size_t kMaxCpus = 1024;
inline constexpr std::size_t kMaxContainers = 512;
inline constexpr std::size_t kMaxProcesses = 8;  ///< reported of one container
inline constexpr std::size_t kMaxId = 128;
inline constexpr std::size_t kMaxName = 64;
inline constexpr std::size_t kMaxList = 4096;  ///< characters of a list of CPUs

/// Timeout of a response.
inline constexpr std::chrono::milliseconds kDeadline{1000};

/// Whether text may have it: text ends up in terminals and in logs.
constexpr bool is_plain(char c) { return c >= ' ' && c <= '~'; }

}  // namespace ka::guest
