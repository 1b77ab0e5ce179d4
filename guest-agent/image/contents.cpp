// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/contents.hpp"

#include <elf.h>

#include <cctype>
#include <cstring>
#include <utility>

#include "agent_unit.hpp"
#include "base/files.hpp"

namespace ka::image {
namespace {

using base::ErrorCode;
using Kind = Item::Kind;

/// As printed by the agent's --version; the program contains the same bytes.
constexpr std::string_view kName = "kata-affinity-agent ";

static_assert(std::string_view(kAgentUnit).find(kAgentPath) != std::string_view::npos);

Item directory(std::string path) { return {Kind::kDirectory, std::move(path), 0755, {}}; }

/// The program as both hooks below `hooks`, and once more as `program`. kata-agent takes no
/// symbolic links for hooks.
void add_agent(std::vector<Item>& items, const std::string& hooks, std::string program,
               std::string agent) {
  const std::string first = hooks + "/prestart/kata-affinity-agent";
  items.push_back({Kind::kFile, first, 0755, std::move(agent)});
  items.push_back({Kind::kHardLink, hooks + "/poststop/kata-affinity-agent", 0755, first});
  items.push_back({Kind::kHardLink, std::move(program), 0755, first});
}

/// The ELF file names a dynamic linker, or is malformed.
bool needs_libraries(std::string_view program) {
  Elf64_Ehdr header;
  if (program.size() < sizeof header) return true;
  std::memcpy(&header, program.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return true;
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    const std::size_t at = header.e_phoff + i * sizeof part;
    if (at > program.size() || program.size() - at < sizeof part) return true;
    std::memcpy(&part, program.data() + at, sizeof part);
    if (part.p_type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace

std::vector<Item> files_of_root(std::string agent) {
  std::vector<Item> items;
  for (const char* path :
       {"usr", "usr/bin", "usr/libexec", "usr/libexec/kata-affinity",
        "usr/libexec/kata-affinity/hooks", "usr/libexec/kata-affinity/hooks/prestart",
        "usr/libexec/kata-affinity/hooks/poststop", "usr/lib", "usr/lib/systemd",
        "usr/lib/systemd/system", "usr/lib/systemd/system/kata-containers.target.wants"}) {
    items.push_back(directory(path));
  }
  add_agent(items, kHookPath + 1, kAgentPath + 1, std::move(agent));
  const std::string units = "usr/lib/systemd/system";
  items.push_back({Kind::kFile, units + "/kata-affinity-agent.service", 0644, kAgentUnit});
  // Kata's guests with systemd boot into this target.
  items.push_back({Kind::kLink, units + "/kata-containers.target.wants/kata-affinity-agent.service",
                   0777, "../kata-affinity-agent.service"});
  return items;
}

std::vector<Item> files_of_extension(std::string agent) {
  std::vector<Item> items;
  for (const char* path : {"bin", "hooks", "hooks/prestart", "hooks/poststop"}) {
    items.push_back(directory(path));
  }
  add_agent(items, "hooks", "bin/kata-affinity-agent", std::move(agent));
  return items;
}

std::string agent_version(std::string_view program) {
  for (std::size_t at = program.find(kName); at != std::string_view::npos;
       at = program.find(kName, at + 1)) {
    const std::string_view rest = program.substr(at + kName.size(), 32);
    const std::size_t end = rest.find_first_not_of("0123456789.");
    if (end != 0 && end != std::string_view::npos && rest[end] == '\0') {
      return std::string(rest.substr(0, end));
    }
  }
  return {};
}

base::Result<std::string> read_agent(const std::filesystem::path& file) {
  auto program = base::read_file(file, kMostAgent);
  if (!program) return program;
  if (agent_version(*program).empty()) {
    return base::fail(ErrorCode::kInvalid, file.native() + " is not a kata-affinity-agent");
  }
  if (needs_libraries(*program)) {
    return base::fail(ErrorCode::kInvalid,
                      file.native() + " is not a static program: the guest may lack its libraries");
  }
  return program;
}

}  // namespace ka::image
