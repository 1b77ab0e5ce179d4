// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where the compiler has none: runs a fuzz target once on each file of the
// folders on the command line, so that what a fuzzer once found stays fixed in every build.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);
      run_file(entry.path());
      ++files;
    }
  }
  if (files == 0) std::fprintf(stderr, "no corpus: nothing was run\n");
  return files == 0 ? 1 : 0;
}
