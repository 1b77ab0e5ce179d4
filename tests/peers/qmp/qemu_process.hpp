// SPDX-License-Identifier: Apache-2.0
// A real QEMU under software emulation, and a monitor of the test's own to drive it.
#pragma once

#include <sys/types.h>

#include <boost/json/object.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/temp_dir.hpp"
#include "vmm/qmp/session.hpp"

namespace ka::tests {

/// True when qemu-system-x86_64 is installed.
bool have_qemu();

/// Runs qemu-system-x86_64 with a q35 machine of 2 vCPUs that can have 4, no devices, and two QMP
/// sockets: one for the client under test, one for the test. Killed in the end.
class QemuProcess {
 public:
  explicit QemuProcess(const std::vector<std::string>& arguments);
  QemuProcess(const QemuProcess&) = delete;
  QemuProcess& operator=(const QemuProcess&) = delete;
  ~QemuProcess();

  int pid() const { return pid_; }
  std::filesystem::path socket() const { return dir_.path() / "ours.sock"; }

  /// Runs a command on the test's socket and waits for its answer.
  base::Result<boost::json::value> execute(std::string_view name,
                                           const boost::json::object& arguments = {});
  /// Kata plugs a vCPU so; `socket` is its index.
  base::Result<boost::json::value> plug_vcpu(int socket);

 private:
  bool connect();
  void send(const std::string& bytes) const;
  /// What the next bytes mean; nothing new when QEMU is silent for long.
  qmp::Session::Received receive();

  TempDir dir_;
  pid_t pid_ = -1;
  int fd_ = -1;
  qmp::Session session_;
};

/// A disk whose boot sector is a guest that ejects each vCPU that it is asked to give back, as an
/// operating system's ACPI would (QEMU, docs/specs/acpi_cpu_hotplug.rst).
std::string ejecting_guest();

}  // namespace ka::tests
