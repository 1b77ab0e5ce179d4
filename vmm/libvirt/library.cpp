// SPDX-License-Identifier: Apache-2.0
#include "vmm/libvirt/library.hpp"

#include <dlfcn.h>

#include "base/text.hpp"

namespace ka::libvirt {
namespace {

/// Resolves functions, and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* module) : module_(module) {}

  template <typename Function>
  void find(const char* name, Function*& into) {
    into = reinterpret_cast<Function*>(::dlsym(module_, name));
    if (into == nullptr && missing_.empty()) missing_ = name;
  }

  const std::string& missing() const { return missing_; }

 private:
  void* module_;
  std::string missing_;
};

void find_general(Symbols& symbols, Library& library) {
  symbols.find("virSetErrorFunc", library.set_error_func);
  symbols.find("virGetLastErrorMessage", library.last_error_message);
  symbols.find("virGetLastErrorCode", library.last_error_code);
  symbols.find("virEventRegisterDefaultImpl", library.event_register_default_impl);
  symbols.find("virEventRunDefaultImpl", library.event_run_default_impl);
  symbols.find("virEventAddHandle", library.event_add_handle);
  symbols.find("virEventRemoveHandle", library.event_remove_handle);
  symbols.find("virEventAddTimeout", library.event_add_timeout);
  symbols.find("virEventRemoveTimeout", library.event_remove_timeout);
  symbols.find("virConnectOpen", library.connect_open);
  symbols.find("virConnectClose", library.connect_close);
  symbols.find("virConnectIsAlive", library.connect_is_alive);
  symbols.find("virConnectSetKeepAlive", library.connect_set_keep_alive);
  symbols.find("virConnectDomainEventRegisterAny", library.connect_domain_event_register);
  symbols.find("virConnectDomainEventDeregisterAny", library.connect_domain_event_deregister);
  symbols.find("virNodeGetCPUMap", library.node_get_cpu_map);
}

void find_of_domains(Symbols& symbols, Library& library) {
  symbols.find("virDomainLookupByName", library.domain_lookup_by_name);
  symbols.find("virDomainFree", library.domain_free);
  symbols.find("virDomainGetName", library.domain_get_name);
  symbols.find("virDomainGetUUIDString", library.domain_get_uuid_string);
  symbols.find("virDomainGetID", library.domain_get_id);
  symbols.find("virDomainIsActive", library.domain_is_active);
  symbols.find("virDomainIsPersistent", library.domain_is_persistent);
  symbols.find("virDomainGetVcpusFlags", library.domain_get_vcpus_flags);
  symbols.find("virDomainGetVcpus", library.domain_get_vcpus);
  symbols.find("virDomainGetVcpuPinInfo", library.domain_get_vcpu_pin_info);
  symbols.find("virDomainPinVcpu", library.domain_pin_vcpu);
  symbols.find("virDomainPinVcpuFlags", library.domain_pin_vcpu_flags);
  symbols.find("virDomainGetEmulatorPinInfo", library.domain_get_emulator_pin_info);
  symbols.find("virDomainPinEmulator", library.domain_pin_emulator);
  symbols.find("virDomainGetIOThreadInfo", library.domain_get_iothread_info);
  symbols.find("virDomainPinIOThread", library.domain_pin_iothread);
  symbols.find("virDomainIOThreadInfoFree", library.domain_iothread_info_free);
  symbols.find("virDomainGetNumaParameters", library.domain_get_numa_parameters);
  symbols.find("virDomainSetNumaParameters", library.domain_set_numa_parameters);
  symbols.find("virTypedParamsClear", library.typed_params_clear);
}

base::ErrorCode code_of(int libvirt_code) {
  switch (libvirt_code) {
    case VIR_ERR_NO_DOMAIN:
    case VIR_ERR_OPERATION_INVALID:
      return base::ErrorCode::kGone;
    case VIR_ERR_NO_SUPPORT:
    case VIR_ERR_OPERATION_UNSUPPORTED:
      return base::ErrorCode::kUnavailable;
    default:
      return base::ErrorCode::kTransient;
  }
}

}  // namespace

base::Result<Library> Library::load() {
  void* module = ::dlopen("libvirt.so.0", RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return base::fail(base::ErrorCode::kUnavailable,
                      std::string("libvirt cannot be loaded: ") + ::dlerror());
  }
  Library library;
  Symbols symbols(module);
  find_general(symbols, library);
  find_of_domains(symbols, library);
  if (!symbols.missing().empty()) {
    return base::fail(base::ErrorCode::kUnavailable,
                      "this libvirt is too old: it has no " + symbols.missing());
  }
  return library;
}

base::Error Library::error(const std::string& what) const {
  return {code_of(last_error_code()),
          what + ": " + base::printable(last_error_message(), base::kMaxSentence), 0};
}

}  // namespace ka::libvirt
