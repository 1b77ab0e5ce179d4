// SPDX-License-Identifier: Apache-2.0
// Bodies of requests, read strictly: an unknown key is an error that names it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/http/message.hpp"
#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::api {

/// `{"vmm_pid":N, "pod_uid", "pod_name", "handler", "cgroup", "qmp_socket", "agent"}`, all of them
/// optional: without a VMM it is a pod of another runtime, which only owns CPUs. Kata's own QMP
/// socket is refused. From the proxy also "proxy_pid" and "original_cpus".
base::Result<policy::ledger::Event> read_sandbox(policy::ledger::Source source,
                                                 const std::string& id, std::string_view body);

/// `{"cpus", "mems", "quota", "period", "shares", "exclusive", "name"}`, all of them optional.
/// `exclusive` is decided by the ledger where it is absent.
base::Result<policy::ledger::Event> read_container(policy::ledger::Source source,
                                                   const std::string& sandbox,
                                                   const std::string& id, std::string_view body);

/// `{"cpus":"2-3", "force", "for"}` for the threads that the path names: `force` also where it
/// takes CPUs from exclusive containers, `for` in seconds. `peer` is the client. `role` is
/// "vcpu", "emulator", "iothread" or "vhost"; `thread` is a vCPU's index, an iothread's id, or
/// empty for the role as a whole.
base::Result<policy::ledger::Event> read_pin(const std::string& sandbox, const std::string& role,
                                             const std::string& thread, std::string_view body,
                                             const std::optional<http::Peer>& peer);

/// The same, to remove the pin.
base::Result<policy::ledger::Event> read_unpin(const std::string& sandbox, const std::string& role,
                                               const std::string& thread);

}  // namespace ka::api
