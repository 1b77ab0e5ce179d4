// SPDX-License-Identifier: Apache-2.0
// libvirt's client library, loaded while the program runs, and only where it is configured: linked
// in, it costs every daemon some 13 MB.
#pragma once

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <memory>
#include <string>
#include <type_traits>

#include "base/result.hpp"

namespace ka::libvirt {

/// The functions that we call, by their names without "vir"; see libvirt's own reference.
struct Library {
  decltype(&::virSetErrorFunc) set_error_func = nullptr;
  decltype(&::virGetLastErrorMessage) last_error_message = nullptr;
  decltype(&::virGetLastErrorCode) last_error_code = nullptr;
  decltype(&::virEventRegisterDefaultImpl) event_register_default_impl = nullptr;
  decltype(&::virEventRunDefaultImpl) event_run_default_impl = nullptr;
  decltype(&::virEventAddHandle) event_add_handle = nullptr;
  decltype(&::virEventRemoveHandle) event_remove_handle = nullptr;
  decltype(&::virEventAddTimeout) event_add_timeout = nullptr;
  decltype(&::virEventRemoveTimeout) event_remove_timeout = nullptr;
  decltype(&::virConnectOpen) connect_open = nullptr;
  decltype(&::virConnectClose) connect_close = nullptr;
  decltype(&::virConnectIsAlive) connect_is_alive = nullptr;
  decltype(&::virConnectSetKeepAlive) connect_set_keep_alive = nullptr;
  decltype(&::virConnectDomainEventRegisterAny) connect_domain_event_register = nullptr;
  decltype(&::virConnectDomainEventDeregisterAny) connect_domain_event_deregister = nullptr;
  decltype(&::virNodeGetCPUMap) node_get_cpu_map = nullptr;
  decltype(&::virDomainLookupByName) domain_lookup_by_name = nullptr;
  decltype(&::virDomainFree) domain_free = nullptr;
  decltype(&::virDomainGetName) domain_get_name = nullptr;
  decltype(&::virDomainGetUUIDString) domain_get_uuid_string = nullptr;
  decltype(&::virDomainGetID) domain_get_id = nullptr;
  decltype(&::virDomainIsActive) domain_is_active = nullptr;
  decltype(&::virDomainIsPersistent) domain_is_persistent = nullptr;
  decltype(&::virDomainGetVcpusFlags) domain_get_vcpus_flags = nullptr;
  decltype(&::virDomainGetVcpus) domain_get_vcpus = nullptr;
  decltype(&::virDomainGetVcpuPinInfo) domain_get_vcpu_pin_info = nullptr;
  decltype(&::virDomainPinVcpu) domain_pin_vcpu = nullptr;  ///< of a domain that runs
  decltype(&::virDomainPinVcpuFlags) domain_pin_vcpu_flags = nullptr;
  decltype(&::virDomainGetEmulatorPinInfo) domain_get_emulator_pin_info = nullptr;
  decltype(&::virDomainPinEmulator) domain_pin_emulator = nullptr;
  decltype(&::virDomainGetIOThreadInfo) domain_get_iothread_info = nullptr;
  decltype(&::virDomainPinIOThread) domain_pin_iothread = nullptr;
  decltype(&::virDomainIOThreadInfoFree) domain_iothread_info_free = nullptr;
  decltype(&::virDomainGetNumaParameters) domain_get_numa_parameters = nullptr;
  decltype(&::virDomainSetNumaParameters) domain_set_numa_parameters = nullptr;
  decltype(&::virTypedParamsClear) typed_params_clear = nullptr;

  /// Loads libvirt.so.0. It stays loaded to the end of the process, since it keeps state of its
  /// own. kUnavailable when it is not installed or lacks a function.
  static base::Result<Library> load();

  /// The error of this thread's last call. No such domain, or one that does not
  /// run, is kGone; what a driver does not have is kUnavailable.
  base::Error error(const std::string& what) const;
};

/// A reference to a domain of a connection.
using DomainRef = std::unique_ptr<virDomain, decltype(&::virDomainFree)>;

}  // namespace ka::libvirt
