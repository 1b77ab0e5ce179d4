// SPDX-License-Identifier: Apache-2.0
// Who has which CPUs on a node whose CPUs we hand out: every container of the node, its class, and
// what an operation makes of all of them. A plain value: the same operations on the same books give
// the same books, also when they were saved and read again in between.
//
// Pools:
//   infra      CPUs for containers of some namespaces, and for them alone
//   exclusive  CPUs that one container may get for itself
//   shared     all CPUs that are neither infra's nor given to one container: what becomes free
//              widens it. It is never empty: reserved CPUs, and as many others as are needed for
//              `min_shared`, are given to no one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/allocate/holdings.hpp"
#include "policy/allocate/machine.hpp"
#include "policy/managed/alignment.hpp"
#include "policy/managed/rules.hpp"

namespace ka::policy::managed {

struct Entry {
  Candidate about;
  CpuUse use = CpuUse::kNone;
  bool infra = false;
  /// It was there before we knew of it, and runs in the shared pool (or, as `use` says, on the CPUs
  /// that it had).
  bool adopted = false;
  /// It exited: it has no CPUs. Where it comes back under another id, it gets `former` if they are
  /// free.
  bool ended = false;
  CpuSet former;
  NodeSet mems;  ///< its memory comes from these nodes; empty: from any
  /// Rules::bind_memory, and the nodes of its CPUs had no room for its limit.
  bool memory_unbound = false;
  std::optional<Problem> problem;  ///< why it has not the class that was asked for

  bool operator==(const Entry&) const = default;
};

/// An entry with its CPUs, as it is saved.
struct Saved {
  Entry entry;
  int cpus_requested = 0;  ///< of a container with CPUs
  CpuSet cpus;             ///< empty: it has none of its own, and is bound to none
  CpuSet promised;
  NodeSet nodes;  ///< where its CPUs are to lie; empty: anywhere

  bool operator==(const Saved&) const = default;
};

/// A container that the runtime has, and the set that it runs on by the runtime's word.
struct Listed {
  Candidate candidate;
  CpuSet cpus;  ///< empty: not set
};

class Books {
 public:
  /// Empty books. The error says what is wrong with the rules on this machine, in one sentence.
  static Expected<Books, std::string> open(const Topology& topology, Rules rules);

  // Every operation that returns a problem leaves the books as they were.

  /// A container is about to be created. Where it cannot have its class it gets kNone, with the
  /// problem in its entry; with Rules::refuse it is refused. Its predecessor of the same pod and
  /// name is replaced. Nothing happens to one that is there. `locality` counts with Rules::align
  /// and Rules::bind_memory.
  std::optional<Problem> create(const Candidate& candidate, const Locality& locality = {});
  /// Its CPU limit is about to change; a quota or period of 0 stays as it is. Growing keeps the
  /// CPUs that it has.
  std::optional<Problem> resize(const std::string& id, std::int64_t quota, std::int64_t period);
  /// An operator gives it another class; it keeps the CPUs that it has where the class allows. What
  /// pods may choose does not matter.
  std::optional<Problem> change(const std::string& id, CpuUse use);
  /// Its pod asks for another class while it runs; absent: for none any more. As create() judges
  /// it; where it cannot have that class it keeps what it has, with the problem in its entry. One
  /// that asks for what it asked for before stays as an operator may have changed it since.
  void request(const std::string& id, const std::optional<std::string>& requested);
  /// It exited: its CPUs are free.
  void end(const std::string& id);
  void remove(const std::string& id);
  void remove_pod(const std::string& sandbox);
  /// All containers and pods that the runtime has: others are gone. An exited container stays known
  /// as long as its pod, since it may come back. Containers that are not known run in the shared
  /// pool from now on; one that obviously owned the CPUs that it runs on keeps them.
  void synchronize(const std::vector<Listed>& all, const std::set<std::string>& sandboxes);
  /// One that the runtime has and whose creation was not reported. Nothing happens to one that is
  /// known.
  void adopt(const Listed& listed);
  /// CPUs came or went. A container that lost CPUs gets others for them, as far as there are any.
  void change_machine(const Topology& topology);
  /// CPUs of containers that others bound: no container gets them for itself. Not saved.
  void set_foreign(const CpuSet& cpus);
  /// CPUs that someone else gave away for good, such as those of a VM that the runtime does not
  /// have: they are in no pool, as far as they are not owned, reserved or needed for `min_shared`.
  /// Not saved.
  void set_outside(const CpuSet& cpus);
  /// While it is held, no container gets more CPUs for itself than it has, but by create(),
  /// resize() and change(). reconcile() gives them what they lack afterwards. Not saved.
  void hold_growth(bool held) { growth_held_ = held; }
  /// What follows from any change of who owns what; a restart finds the same. It ends: containers
  /// only grow, or lose their class.
  void reconcile();

  std::vector<Saved> save() const;
  /// Into empty books. What does not fit any more (another machine, other rules) is put right:
  /// containers keep what they have as far as that exists and no one else has it.
  void restore(const std::vector<Saved>& saved);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Rules& rules() const { return rules_; }
  /// Where a container may run; empty for one that is not known or ended. Infra's run in the shared
  /// pool where the infra pool has no CPU online.
  CpuSet cpus_of(const std::string& id) const;
  /// CPUs that are given to one container alone.
  const CpuSet& exclusive() const { return holdings_.exclusive(); }
  CpuSet shared_pool() const { return holdings_.shared_pool(); }
  CpuSet infra() const { return rules_.infra & topology_->online(); }
  const CpuSet& outside() const { return outside_; }
  /// Of the shared pool, what no container gets for itself.
  const CpuSet& kept_shared() const { return kept_shared_; }
  /// Free CPUs that a container could get for itself.
  CpuSet available() const { return shared_pool() - kept_shared_; }

  bool operator==(const Books& other) const { return save() == other.save(); }

 private:
  Books(const Topology& topology, Rules rules);

  void make_machine();
  allocate::Holdings empty_holdings() const;
  void reopen(std::map<std::string, allocate::Holding> holdings);
  CpuSet find_kept_shared(const CpuSet& owned) const;
  CpuSet find_outside() const;
  void rebuild(std::map<std::string, allocate::Holding> holdings);
  void refill();
  void keep_pool();
  void demote(const std::string& id, int cpus);
  void retry(const std::string& id);
  void resize_holding(Entry& entry);
  std::optional<Problem> change_holding(const std::string& id, CpuUse use, int cpus);
  std::optional<Problem> place(const Candidate& candidate, CpuUse use, int cpus,
                               const CpuSet& former, const Locality& locality);
  struct Demand {
    CpuSet free;
    CpuSet former;  ///< of those, what it had
    int cpus = 0;
  };
  Expected<std::optional<NodeSet>, Problem> nodes_for(const Candidate& candidate,
                                                      const Demand& demand,
                                                      const Locality& locality) const;
  std::optional<NodeSet> nodes_of_pod(const std::string& sandbox) const;
  CpuSet replace(const Candidate& candidate);
  void adopt(const Listed& listed, const std::vector<Listed>& all);
  bool owns_obviously(const Listed& listed, const std::vector<Listed>& all) const;
  void bind_memory(Entry& entry, const Locality& locality) const;
  void widen_memory();
  void release(const std::string& id);
  void erase(const std::string& id);
  const allocate::Holding* holding(const std::string& id) const;

  Rules rules_;
  std::shared_ptr<const Topology> topology_;
  CpuSet given_outside_;
  CpuSet outside_;                                    ///< of those, what is in no pool
  std::shared_ptr<const allocate::Machine> machine_;  ///< without infra's CPUs and those outside
  CpuSet foreign_;
  bool growth_held_ = false;
  CpuSet kept_shared_;
  allocate::Holdings holdings_;  ///< of classes other than kNone
  std::map<std::string, Entry> entries_;
};

}  // namespace ka::policy::managed
