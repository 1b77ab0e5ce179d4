// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/vectors.hpp"

#include <boost/json/parse.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "tests/catch.hpp"

namespace ka::test {
namespace {

namespace fs = std::filesystem;

fs::path find_directory() {
  if (const char* text = std::getenv("KATA_AFFINITY_CONFORMANCE")) return text;
  for (fs::path at = KA_SOURCE_DIR; at != at.parent_path(); at = at.parent_path()) {
    if (fs::exists(at / "shared" / "conformance")) return at / "shared" / "conformance";
  }
  return {};
}

int number(const boost::json::object& object, const char* key) {
  return object.at(key).to_number<int>();
}

policy::allocate::Machine read_machine(const boost::json::object& topology) {
  std::vector<policy::Cpu> cpus;
  for (const auto& value : topology.at("cpus").as_array()) {
    const auto& cpu = value.as_object();
    cpus.push_back({.cpu = number(cpu, "cpu"),
                    .core = number(cpu, "core"),
                    .socket = number(cpu, "socket"),
                    .numa = number(cpu, "numa"),
                    .l3 = number(cpu, "uncore")});
  }
  auto made = policy::Topology::make(std::move(cpus));
  if (!made) throw std::runtime_error(made.error());
  return policy::allocate::Machine(*std::move(made));
}

void say_missing(const std::string& file) {
  std::cout << "SKIPPED: no " << file
            << " (set KATA_AFFINITY_CONFORMANCE, or put shared/conformance beside the sources)\n";
}

struct PipeCloser {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

}  // namespace

std::optional<boost::json::object> conformance_vectors(const std::string& file) {
  const fs::path path = find_directory() / file;
  std::ifstream stream(path);
  if (!stream) {
    say_missing(file);
    return std::nullopt;
  }
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return boost::json::parse(text).as_object();
}

bool each_line_of(const std::string& file, const std::function<void(const std::string&)>& use) {
  const fs::path path = find_directory() / file;
  if (!fs::exists(path)) {
    say_missing(file);
    return false;
  }
  const std::unique_ptr<std::FILE, PipeCloser> pipe(
      popen(("gzip -dc '" + path.string() + "'").c_str(), "r"));
  REQUIRE(pipe);
  char* line = nullptr;
  std::size_t size = 0;
  while (getline(&line, &size, pipe.get()) > 0) use(line);
  std::free(line);
  return true;
}

void say_count(const std::string& file, std::size_t cases, std::size_t least) {
  std::cout << file << ": " << cases << " cases\n";
  CHECK(cases >= least);
}

std::map<std::string, policy::allocate::Machine> machines_of(const boost::json::object& vectors) {
  std::map<std::string, policy::allocate::Machine> machines;
  for (const auto& [name, topology] : vectors.at("topologies").as_object()) {
    machines.emplace(std::string(name), read_machine(topology.as_object()));
  }
  return machines;
}

}  // namespace ka::test
