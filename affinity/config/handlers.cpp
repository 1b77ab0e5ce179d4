// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/handlers.hpp"

#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <utility>

#include "affinity/config/files.hpp"
#include "base/files.hpp"

namespace ka::config {
namespace {

namespace fs = std::filesystem;
using Path = std::vector<std::string>;

constexpr const char* kContainerd = "etc/containerd";
constexpr std::string_view kKataShim = "containerd-shim-kata";
constexpr std::string_view kProxy = "containerd-shim-kata-affinity-";

const std::string* text_of(const Entries& entries, const Path& path) {
  const auto found = entries.find(path);
  return found == entries.end() ? nullptr : std::get_if<std::string>(&found->second.value);
}

/// "io.containerd.kata-qemu.v2" -> "containerd-shim-kata-qemu-v2", as containerd does it; an
/// absolute path is the program.
std::string shim_of(const std::string& runtime_type) {
  if (runtime_type.starts_with('/')) return runtime_type;
  const auto last = runtime_type.rfind('.');
  if (last == std::string::npos || last == 0) return {};
  const auto middle = runtime_type.rfind('.', last - 1);
  return "containerd-shim-" + runtime_type.substr(middle + 1, last - middle - 1) + '-' +
         runtime_type.substr(last + 1);
}

bool starts_kata(const Handler& handler) {
  return fs::path(handler.shim).filename().native().starts_with(kKataShim);
}

/// The table of a handler: plugins.*.containerd.runtimes.NAME, crio.runtime.runtimes.NAME.
bool is_key_of_handler(const Path& path, const char* key) {
  return path.size() >= 3 && path.back() == key && path[path.size() - 3] == "runtimes";
}

Path sibling(Path path, std::initializer_list<std::string> names) {
  path.pop_back();
  path.insert(path.end(), names);
  return path;
}

void add(Handler handler, std::vector<Handler>& handlers) {
  const bool known = std::ranges::find(handlers, handler.name, &Handler::name) != handlers.end();
  if (!known && starts_kata(handler)) handlers.push_back(std::move(handler));
}

std::vector<Handler> handlers_of(const Entries& entries) {
  std::vector<Handler> handlers;
  for (const auto& [path, entry] : entries) {
    const auto* type = std::get_if<std::string>(&entry.value);
    if (type == nullptr || !is_key_of_handler(path, "runtime_type")) continue;
    const auto* program = text_of(entries, sibling(path, {"runtime_path"}));
    const auto* config = text_of(entries, sibling(path, {"options", "ConfigPath"}));
    if (config == nullptr) config = text_of(entries, sibling(path, {"runtime_config_path"}));
    add({path[path.size() - 2], program != nullptr && !program->empty() ? *program : shim_of(*type),
         config == nullptr ? "" : *config, entry.key_at.file},
        handlers);
  }
  return handlers;
}

std::vector<fs::path> matching(const fs::path& pattern, base::Trouble& unseen) {
  ::glob_t found{};
  const int failed = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  if (failed == GLOB_ABORTED) unseen.record(base::system_error(errno, pattern.string()));
  if (failed == GLOB_NOSPACE) unseen.record(base::system_error(ENOMEM, pattern.string()));
  const std::vector<fs::path> files(found.gl_pathv,
                                    std::next(found.gl_pathv, static_cast<long>(found.gl_pathc)));
  ::globfree(&found);
  return files;
}

std::vector<std::string> imports_of(const Entries& entries) {
  const auto found = entries.find({"imports"});
  if (found == entries.end()) return {};
  const auto* patterns = std::get_if<std::vector<std::string>>(&found->second.value);
  return patterns == nullptr ? std::vector<std::string>{} : *patterns;
}

/// What is not valid is its program's affair.
void record_unseen(const base::Error& error, base::Trouble& unseen) {
  if (error.code != base::ErrorCode::kInvalid) unseen.record(error);
}

base::Result<Entries> read_entries(const fs::path& file) {
  const auto text = base::read_regular_file(file, kMaxFile);
  if (!text) return unexpected(text.error());
  return parse_whole(*text, file);
}

void merge_over(Entries& entries, Entries more) {
  for (auto& [path, entry] : more) entries.insert_or_assign(path, std::move(entry));
}

/// A relative pattern is one beside the file that imports.
fs::path below(const fs::path& root, const fs::path& importer, const fs::path& pattern) {
  return pattern.is_absolute() ? root / pattern.relative_path() : importer.parent_path() / pattern;
}

/// Files that a file imports, and those import, each once.
class Imports {
 public:
  Imports(const fs::path& root, Entries& entries, base::Trouble& unseen)
      : root_(root), entries_(entries), unseen_(unseen) {}

  void merge_imports(const fs::path& importer, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      for (const fs::path& file : matching(below(root_, importer, pattern), unseen_)) merge(file);
    }
  }

 private:
  void merge(const fs::path& file) {
    if (!seen_.insert(file).second) return;
    auto entries = read_entries(file);
    if (!entries) return record_unseen(entries.error(), unseen_);
    const auto patterns = imports_of(*entries);
    merge_over(entries_, std::move(*entries));
    merge_imports(file, patterns);
  }

  const fs::path& root_;
  Entries& entries_;
  base::Trouble& unseen_;
  std::set<fs::path> seen_;
};

bool covers_conf_d(const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [](const std::string& pattern) {
    const fs::path whole = fs::path("/etc/containerd") / pattern;
    return ::fnmatch(whole.c_str(), "/etc/containerd/conf.d/50-kata-affinity.toml", 0) == 0;
  });
}

std::vector<Handler> read_crio(const fs::path& root, base::Trouble& unseen) {
  std::vector<fs::path> files = {root / "etc/crio/crio.conf"};
  const fs::path folder = root / "etc/crio/crio.conf.d";
  const auto names = base::list_directory(folder);
  unseen.record(names);
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    files.push_back(folder / name);
  }
  Entries merged;
  for (const fs::path& file : files) {
    auto entries = read_entries(file);
    if (entries) {
      merge_over(merged, std::move(*entries));
    } else {
      record_unseen(entries.error(), unseen);
    }
  }
  return handlers_of(merged);
}

}  // namespace

bool Handler::is_proxy() const { return fs::path(shim).filename().native().starts_with(kProxy); }

base::Result<Containerd> read_containerd(const fs::path& root, base::Trouble& unseen) {
  const fs::path file = root / kContainerd / "config.toml";
  auto entries = read_entries(file);
  if (!entries) return unexpected(entries.error());
  Containerd found;
  const auto version = entries->find({"version"});
  if (version != entries->end()) {
    if (const auto* number = std::get_if<std::int64_t>(&version->second.value)) {
      found.version = static_cast<int>(*number);
    }
  }
  const auto patterns = imports_of(*entries);
  found.imports_conf_d = covers_conf_d(patterns);
  Imports(root, *entries, unseen).merge_imports(file, patterns);
  found.handlers = handlers_of(*entries);
  return found;
}

std::vector<Handler> read_handlers(const fs::path& root, base::Trouble& unseen) {
  std::vector<Handler> handlers;
  auto containerd = read_containerd(root, unseen);
  if (containerd) {
    handlers = std::move(containerd->handlers);
  } else {
    record_unseen(containerd.error(), unseen);
  }
  for (Handler& handler : read_crio(root, unseen)) add(std::move(handler), handlers);
  return handlers;
}

}  // namespace ka::config
