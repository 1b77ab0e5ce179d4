// SPDX-License-Identifier: Apache-2.0
// Reports the calls that pass to the daemon, as requests of its API (docs/use/api.md).
//
// A spec is reported when containerd requests it, before the shim acts, so that other sandboxes
// leave its CPUs in time; after the shim's response, the actual state is reported again.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "shim-ext/proxy/observer.hpp"
#include "shim-ext/proxy/spec.hpp"

namespace ka::proxy {

/// A request of the API. A later one replaces an earlier one with the same path.
struct Report {
  std::string method;
  std::string path;
  std::string body;

  bool operator==(const Report&) const = default;
};

/// The proxy itself: the daemon places it with its sandbox, and restores its previous mask.
struct Self {
  int pid = 0;                   ///< 0: not reported
  policy::CpuSet original_cpus;  ///< what it could use before it narrowed itself; empty: unknown
};

class Reporter {
 public:
  /// `bundles`: the directory with the bundles of this namespace's containers, by id.
  explicit Reporter(std::filesystem::path bundles, Self self = {})
      : bundles_(std::move(bundles)), self_(std::move(self)) {}

  std::vector<Report> on_request(const Call& call);
  std::vector<Report> on_response(const Call& call, const Response& response);

 private:
  struct Container {
    Spec spec;
    std::optional<Resources> wanted;  ///< an Update that the shim has not answered yet
  };

  /// Of a container that was created before us, from its bundle. nullptr: it is not known.
  Container* find(const std::string& container);
  Container* add(const std::string& container, const std::filesystem::path& bundle);
  std::vector<Report> created(const Call& call, const Response& response);
  std::vector<Report> gone(const std::string& container);
  Report sandbox_report(const Spec& spec, int vmm_pid) const;

  std::filesystem::path bundles_;
  Self self_;
  std::map<std::string, Container> containers_;
};

}  // namespace ka::proxy
