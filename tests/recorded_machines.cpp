// SPDX-License-Identifier: Apache-2.0
#include "tests/recorded_machines.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

#include "affinity/host/topology.hpp"
#include "tests/temp_dir.hpp"

namespace ka::test {

namespace fs = std::filesystem;

fs::path recorded_machines_directory() {
  if (const char* text = std::getenv("KATA_AFFINITY_MACHINES")) return text;
  for (fs::path above = KA_SOURCE_DIR; above != above.root_path(); above = above.parent_path()) {
    if (fs::is_directory(above / "shared/machines")) return above / "shared/machines";
  }
  return {};
}

fs::path unpack_machine(const fs::path& archive, const fs::path& into) {
  const std::string extract =
      "tar -xjf '" + archive.string() + "' --no-same-owner -C '" + into.string() + "'";
  if (std::system(extract.c_str()) != 0)
    throw std::runtime_error("cannot unpack " + archive.string());
  for (const auto& entry : fs::recursive_directory_iterator(into)) {
    if (entry.path().filename() == "sys" && fs::is_directory(entry.path())) {
      return entry.path().parent_path();
    }
  }
  throw std::runtime_error("no sys in " + archive.string());
}

std::vector<RecordedMachine> recorded_machines() {
  const fs::path directory = recorded_machines_directory();
  if (directory.empty()) {
    std::cout << "SKIPPED: no recorded machines (shared/machines, or KATA_AFFINITY_MACHINES=DIR)\n";
    return {};
  }
  std::vector<RecordedMachine> machines;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".bz2") continue;
    const tests::TempDir dir;
    auto topology = host::read_machine(unpack_machine(entry.path(), dir.path()));
    if (!topology) throw std::runtime_error(topology.error().message);
    machines.push_back({entry.path().filename().string(), *std::move(topology)});
  }
  std::ranges::sort(machines, {}, &RecordedMachine::name);
  return machines;
}

}  // namespace ka::test
