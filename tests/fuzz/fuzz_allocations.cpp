// SPDX-License-Identifier: Apache-2.0
// The file of allocations may be damaged: it is refused, or what it holds is written back the same,
// and becomes books in which no CPU has two owners and some are left for all.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "affinity/managed/file.hpp"
#include "tests/fuzz/require.hpp"
#include "tests/machines.hpp"

using ka::policy::CpuSet;
using ka::policy::managed::Books;
using ka::policy::managed::CpuUse;
using ka::tests::require;

namespace {

void check(const Books& books) {
  CpuSet owned;
  for (const auto& [id, entry] : books.entries()) {
    if (entry.use != CpuUse::kExclusive || entry.ended) continue;
    const CpuSet cpus = books.cpus_of(id);
    require(!cpus.empty() && !cpus.intersects(owned) && !cpus.intersects(books.shared_pool()));
    owned |= cpus;
  }
  require(owned == books.exclusive());
  require(!books.shared_pool().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string kBoot = "boot";
  static const auto kMachine = ka::test::grid_machine({}).topology();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto saved = ka::managed::from_text(text, kBoot);
  if (!saved) return 0;
  const auto again = ka::managed::from_text(ka::managed::to_text(*saved, kBoot), kBoot);
  require(again && *again == *saved);
  Books books = Books::open(kMachine, {}).value();
  books.restore(*saved);
  check(books);
  Books restarted = Books::open(kMachine, {}).value();
  restarted.restore(books.save());
  require(restarted == books);
  return 0;
}
