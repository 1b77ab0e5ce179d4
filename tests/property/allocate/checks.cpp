// SPDX-License-Identifier: Apache-2.0
#include "tests/property/allocate/checks.hpp"

#include "tests/allocate.hpp"
#include "tests/catch.hpp"
#include "tests/property/allocate/slow_rules.hpp"

namespace ka::test {
namespace {

using namespace ka::policy;
using namespace ka::policy::allocate;

OptionSet random_options(Random& random, const Machine& machine) {
  OptionSet options;
  do {
    options = {};
    for (const CpuOption option : kCpuOptions) {
      if (random.chance(25)) options.add(option);
    }
  } while (refused_options(options, machine, HintPolicy::kNone));
  return options;
}

CpuRequest random_request(Random& random, const Machine& machine) {
  CpuRequest request{.available = random.part_of(machine.cpus(), random.one_of<int>({40, 80, 100})),
                     .options = random_options(random, machine),
                     .group_size = random.between(1, 4)};
  if (random.chance(30)) request.reserved = random.part_of(machine.cpus(), 20);
  if (random.chance(30)) request.numa_affinity = random.part_of(machine.topology().nodes(), 40);
  if (random.chance(20))
    request.cpu_class = random.chance(50) ? CpuClass::kFast : CpuClass::kEfficient;
  request.prefer_isolated = random.chance(20);
  request.explain = random.chance(20);
  if (random.chance(30)) {
    const CpuSet rest = machine.cpus() - request.available;
    request.held = random.part_of(random.chance(50) ? rest : machine.whole_cores_in(rest), 50);
    request.promised = random.part_of(request.held, 50);
  }
  request.cpus = random.between(0, (request.available | request.held).size() + 1);
  return request;
}

bool whole(const CpuRequest& request) { return request.options.has(CpuOption::kFullPcpusOnly); }

/// What a new CPU may be.
CpuSet allowed(const Machine& machine, const CpuRequest& request) {
  return (request.available - request.reserved - request.held) &
         cpus_of_class(machine.topology(), request.cpu_class);
}

void check_grown(const Machine& machine, const CpuRequest& request, const CpuSet& cpus) {
  CHECK(cpus.size() == request.cpus);
  CHECK(request.held.subset_of(cpus));
  CHECK((cpus - request.held).subset_of(allowed(machine, request)));
}

void check_shrunk(const CpuRequest& request, const CpuSet& cpus) {
  CHECK(cpus.size() == request.cpus);
  CHECK(cpus.subset_of(request.held));
  if (whole(request)) return;
  const CpuSet kept = request.promised & cpus;
  CHECK((kept == request.promised || kept == cpus));
}

/// Without full-pcpus-only, only too few CPUs are a reason to refuse.
void check_refused(const Machine& machine, const CpuRequest& request) {
  const bool shrinks = request.cpus < request.held.size();
  const CpuSet room = shrinks ? request.held : allowed(machine, request);
  const int needed = shrinks ? request.cpus : request.cpus - request.held.size();
  if (!whole(request)) {
    CHECK(needed > room.size());
  } else if (machine.uniform_cores() && request.cpus % machine.average_core() == 0) {
    if (shrinks || machine.whole_cores(request.held)) {
      CHECK(needed > machine.whole_cores_in(room).size());
    }
  }
}

void check_request(const Machine& machine, const CpuRequest& request) {
  const auto answer = ka::tests::allocate_by_options(machine, request);
  if (!answer) {
    check_refused(machine, request);
  } else if (request.cpus < request.held.size()) {
    check_shrunk(request, answer->cpus);
  } else {
    check_grown(machine, request, answer->cpus);
  }
  if (answer && whole(request)) CHECK(machine.whole_cores(answer->cpus));
  const auto again = ka::tests::allocate_by_options(machine, request);
  CHECK((answer ? answer->cpus : CpuSet{}) == (again ? again->cpus : CpuSet{}));
}

/// Some of what kubelet's static policy may be told; its rules for whole cores come before these.
OptionSet kubelet_options(Random& random) {
  using enum CpuOption;
  return random.one_of<OptionSet>({{},
                                   {kDistributeAcrossCores},
                                   {kPreferAlignByUncoreCache},
                                   {kDistributeAcrossNuma},
                                   {kDistributeAcrossNuma, kAlignBySocket}});
}

}  // namespace

void check_validity(Random& random, const Machine& machine, int requests) {
  for (int i = 0; i < requests; ++i) {
    const CpuRequest request = random_request(random, machine);
    INFO("request " << i << ": " << request.cpus << " of " << format_list(request.available)
                    << ", held " << format_list(request.held));
    check_request(machine, request);
  }
}

void check_rules(Random& random, const Machine& machine, int requests) {
  for (int i = 0; i < requests; ++i) {
    SlowRequest slow{.available = random.part_of(machine.cpus(), random.between(20, 100)),
                     .cpus = 0,
                     .options = kubelet_options(random),
                     .group_size = random.between(1, 3)};
    slow.cpus = random.between(0, slow.available.size());
    INFO("request " << i << ": " << slow.cpus << " of " << format_list(slow.available)
                    << ", groups of " << slow.group_size);
    const auto answer = ka::tests::allocate_by_options(machine, {.cpus = slow.cpus,
                                                                 .available = slow.available,
                                                                 .options = slow.options,
                                                                 .group_size = slow.group_size});
    REQUIRE(answer);
    CHECK(format_list(answer->cpus) == format_list(take_slowly(machine.topology(), slow)));
  }
}

}  // namespace ka::test
