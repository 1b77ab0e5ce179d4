// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <string_view>

#include "base/files.hpp"
#include "guest-agent/image/contents.hpp"
#include "guest-agent/image/dos_partitions.hpp"
#include "guest-agent/image/image.hpp"
#include "guest-agent/image/program.hpp"
#include "guest-agent/image/work_directory.hpp"

namespace ka::image {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kAlignment = std::size_t{1} << 20;  ///< of partitions
constexpr std::size_t kMost = std::size_t{256} << 20;

std::size_t round_up(std::size_t size, std::size_t to) { return (size + to - 1) / to * to; }

/// A tree of files, for mkfs.erofs.
Result<void> lay_out(const fs::path& root, const std::vector<Item>& items) {
  std::error_code wrong;
  fs::create_directory(root, wrong);
  for (const Item& item : items) {
    const fs::path path = root / item.path;
    if (item.kind == Item::Kind::kDirectory) fs::create_directory(path, wrong);
    if (item.kind == Item::Kind::kHardLink) fs::create_hard_link(root / item.data, path, wrong);
    if (wrong) return base::fail_errno(wrong.value(), path.native());
    if (item.kind != Item::Kind::kFile) continue;
    if (auto written = base::write_atomically(path, item.data); !written) return written;
    fs::permissions(path, static_cast<fs::perms>(item.mode), wrong);
  }
  return {};
}

Result<void> run_well(std::vector<std::string> words, const fs::path& directory,
                      std::string* said = nullptr) {
  const std::string name = words.front();
  auto ended = run({.words = std::move(words), .directory = directory, .input = {}});
  if (!ended) return unexpected(ended.error());
  if (ended->status != 0) {
    return base::fail(ErrorCode::kInternal, name + ": " + ended->input_error());
  }
  if (said != nullptr) *said = std::move(ended->out);
  return {};
}

/// "Root hash:      \tabc" of what veritysetup prints.
std::string value_of(std::string_view said, std::string_view label) {
  const std::size_t at = said.find(label);
  if (at == std::string_view::npos) return {};
  std::string_view rest = said.substr(at + label.size());
  rest = rest.substr(0, rest.find('\n'));
  const std::size_t begin = rest.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  rest.remove_prefix(begin);
  return std::string(rest.substr(0, rest.find(' ')));
}

/// Makes the file "hashes" of the file "data". The parameters as Kata's configuration has them.
Result<std::string> measure(const fs::path& directory) {
  std::string said;
  const std::string block = std::to_string(kBlock);
  auto done = run_well({"veritysetup", "format", "--no-superblock", "--data-block-size=" + block,
                        "--hash-block-size=" + block, "data", "hashes"},
                       directory, &said);
  if (!done) return unexpected(done.error());
  const std::string hash = value_of(said, "Root hash:");
  const std::string salt = value_of(said, "Salt:");
  const std::string blocks = value_of(said, "Data blocks:");
  if (hash.empty() || salt.empty() || blocks.empty()) {
    return base::fail(ErrorCode::kInternal, "veritysetup printed no root hash");
  }
  return fmt::format("root_hash={},salt={},data_blocks={},data_block_size={},hash_block_size={}",
                     hash, salt, blocks, kBlock, kBlock);
}

void put_little(std::string& image, std::size_t at, std::size_t value) {
  for (std::size_t i = 0; i < 4; ++i) image[at + i] = static_cast<char>(value >> (8 * i));
}

/// Appends a partition, and enters it into the table in the first sector.
void add_partition(std::string& image, std::size_t number, const std::string& bytes) {
  constexpr char kLinux = '\x83';
  const std::size_t begin = round_up(image.size(), kAlignment);
  image.resize(begin, '\0');
  image += bytes;
  image.resize(round_up(image.size(), kBlock), '\0');
  const std::size_t entry = kPartitionTable + kPartitionEntry * number;
  image[entry + 4] = kLinux;
  put_little(image, entry + 8, begin / kSector);
  put_little(image, entry + 12, (image.size() - begin) / kSector);
}

Result<std::string> assemble(const fs::path& directory, bool measured) {
  std::string image(kSector, '\0');
  image[510] = '\x55';
  image[511] = '\xaa';
  auto data = base::read_file(directory / "data", kMost);
  if (!data) return data;
  add_partition(image, 0, *data);
  if (!measured) return image;
  auto hashes = base::read_file(directory / "hashes", kMost);
  if (!hashes) return hashes;
  add_partition(image, 1, *hashes);
  return image;
}

}  // namespace

Result<std::string> make_extension(const fs::path& made, const fs::path& agent, bool measured) {
  auto program = read_agent(agent);
  if (!program) return program;
  const WorkDirectory work(fs::absolute(made).parent_path());
  if (!work.good()) return unexpected(work.error());
  auto done = lay_out(work.path() / "root", files_of_extension(std::move(*program)));
  // The same agent makes the same image.
  if (done) done = run_well({"mkfs.erofs", "-T0", "--all-root", "data", "root"}, work.path());
  if (!done) return unexpected(done.error());
  std::string parameters;
  if (measured) {
    auto measures = measure(work.path());
    if (!measures) return measures;
    parameters = std::move(*measures);
  }
  auto image = assemble(work.path(), measured);
  if (!image) return image;
  const auto written = base::write_atomically(made, *image, kImageMode);
  if (!written) return unexpected(written.error());
  return parameters;
}

}  // namespace ka::image
