// Whatever is asked of whatever machine: an answer has the right size, comes from what is
// available, keeps what is held, and consists of whole cores where those are promised.
#include <cstdlib>

#include "tests/catch.hpp"
#include "tests/property/allocate/random.hpp"

using namespace ka::policy;
using ka::test::Random;

namespace {

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
  if (random.chance(30) && !request.options.has(CpuOption::kFullPcpusOnly)) {
    request.held = random.part_of(machine.cpus() - request.available, 50);
    request.promised = random.part_of(request.held, 50);
  }
  request.cpus = random.between(0, (request.available | request.held).size() + 1);
  return request;
}

/// What a new CPU may be.
CpuSet allowed(const Machine& machine, const CpuRequest& request) {
  return (request.available - request.reserved - request.held) &
         cpus_of_class(machine.topology(), request.cpu_class);
}

void check_grown(const Machine& machine, const CpuRequest& request, const CpuSet& cpus) {
  CHECK(cpus.size() == request.cpus);
  CHECK(request.held.subset_of(cpus));
  CHECK((cpus - request.held).subset_of(allowed(machine, request)));
  if (request.options.has(CpuOption::kFullPcpusOnly)) CHECK(machine.whole_cores(cpus));
}

void check_shrunk(const CpuRequest& request, const CpuSet& cpus) {
  CHECK(cpus.size() == request.cpus);
  CHECK(cpus.subset_of(request.held));
  const CpuSet kept = request.promised & cpus;
  CHECK((kept == request.promised || kept == cpus));
}

/// Without full-pcpus-only, only too few CPUs are a reason to refuse.
void check_refused(const Machine& machine, const CpuRequest& request) {
  const int room = allowed(machine, request).size();
  const int needed = request.cpus - request.held.size();
  if (!request.options.has(CpuOption::kFullPcpusOnly)) {
    CHECK(needed > room);
  } else if (machine.uniform_cores() && request.cpus % machine.average_core() == 0) {
    CHECK(needed > machine.whole_cores_in(allowed(machine, request)).size());
  }
}

void check_request(const Machine& machine, const CpuRequest& request) {
  const auto answer = allocate(machine, request);
  if (!answer) {
    check_refused(machine, request);
  } else if (request.cpus < request.held.size()) {
    check_shrunk(request, answer->cpus);
  } else {
    check_grown(machine, request, answer->cpus);
  }
  const auto again = allocate(machine, request);
  CHECK((answer ? answer->cpus : CpuSet{}) == (again ? again->cpus : CpuSet{}));
}

}  // namespace

TEST_CASE("answers are valid on random machines") {
  const unsigned seed = ka::test::first_seed();
  for (unsigned i = 0; i < 400; ++i) {
    Random random(seed + i);
    const Machine machine = ka::test::random_machine(random);
    for (int j = 0; j < 10; ++j) {
      const CpuRequest request = random_request(random, machine);
      INFO("seed " << seed + i << ", request " << j << ": " << request.cpus << " of "
                   << format_list(request.available));
      check_request(machine, request);
    }
  }
}
