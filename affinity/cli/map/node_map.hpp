// SPDX-License-Identifier: Apache-2.0
// The node as `map` draws it: the response to GET /v1/node, put in order.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/messages/interruptions.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {

/// A container that owns CPUs.
struct MapOwner {
  std::string letter;    ///< its sign in the drawing: A, B, ... Z, AA
  std::string name;      ///< "shop/cart, container app"
  bool vm = false;       ///< false: of a runtime without VMs
  bool reported = true;  ///< false: only kubelet's state names it
  policy::CpuSet cpus;
  std::string vcpus;  ///< "vCPU 2 on 4, vCPU 3 on 5"; empty where none is dedicated to it
  /// "isolated", "NOT isolated: housekeeping"; empty where that is not said.
  std::string isolation;
  std::string grade{};  ///< "quiet", "NOT quiet: no helper", of a pod without a VM; may be empty
};

struct MapCpu {
  int cpu = 0;
  bool online = true;
  bool shared = false;              ///< of the shared pool
  std::vector<std::size_t> owners;  ///< indexes of NodeMap::owners; two are a conflict
  std::string vcpu;                 ///< "vCPU 2": dedicated to it
  std::string threads;              ///< of sandboxes, that may run on it: "2 emulator, 1 vCPU"
  long long thread_count = 0;
  messages::Interrupted interrupted;  ///< of its dedicated vCPU, as far as it was counted

  /// Interruptions a second.
  double heat() const;
};

/// What of the host may run on CPUs of sandboxes whose grade is quiet.
struct MapHost {
  /// CPUs, and what may still run there: "interrupt 24: nvme0q4: the kernel manages it".
  struct Row {
    std::string cpus, text;
  };

  std::string cpus{};     ///< that it keeps off, or is to keep off
  std::string problem{};  ///< why it does not
  std::vector<Row> rows{};
};

struct NodeMap {
  // CPUs by core, by L3 cache, by NUMA node, by socket, as they lie in one another.
  using Cores = std::map<long long, std::vector<MapCpu>>;
  using Caches = std::map<long long, Cores>;
  using Nodes = std::map<long long, Caches>;
  using Sockets = std::map<long long, Nodes>;

  Sockets sockets{};
  std::vector<MapOwner> owners{};
  std::string shared_pool{};
  MapHost host{};
  bool observe = false;  ///< vCPUs are only planned, nothing is written

  int cpu_count() const;
};

/// Leniently: the daemon may be older or newer than this program.
NodeMap read_map(const boost::json::value& node);

/// " (VM)", " (no VM)", " (not reported by the runtime yet)": what follows an owner's name.
std::string_view owner_kind(const MapOwner& owner);

/// "4A", "9" without an owner, "5AB!" with two owners, "7x" offline; "4A+" where others run
/// there at least once a second, "4A*" 100 times.
std::string sign_of(const NodeMap& map, const MapCpu& cpu);

}  // namespace ka::cli
