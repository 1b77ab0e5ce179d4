// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/trace_format.hpp"

#include <cstring>
#include <limits>
#include <utility>

#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::cli::noise {
namespace {

/// The number behind `key` in a line of "key:NUMBER;" parts.
std::optional<std::size_t> number_behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + key.size());
  const auto number = base::parse_number(rest.substr(0, rest.find(';')));
  if (!number || *number < 0 || *number > std::numeric_limits<std::uint16_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(*number);
}

/// "char next_comm[16]": next_comm.
std::string_view name_of(std::string_view declaration) {
  declaration = declaration.substr(0, declaration.find('['));
  return declaration.substr(declaration.rfind(' ') + 1);
}

std::uint64_t read_integer(Record bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

std::int64_t with_sign(std::uint64_t value, std::size_t size) {
  const unsigned unused = static_cast<unsigned>(8 * (sizeof value - size));
  return static_cast<std::int64_t>(value << unused) >> unused;
}

bool is_integer(std::size_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

}  // namespace

std::optional<std::pair<std::string, TraceFormat::Field>> TraceFormat::parse_field(
    std::string_view line) {
  constexpr std::string_view kField = "field:", kDataLoc = "__data_loc";
  const std::size_t at = line.find(kField);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + kField.size());
  const std::size_t end = line.find(';');
  const auto offset = number_behind(line, "offset:"), size = number_behind(line, "size:");
  if (end == std::string_view::npos || !offset || !size) return std::nullopt;
  std::string_view declaration = line.substr(0, end);
  const bool is_elsewhere = declaration.starts_with(kDataLoc);
  return std::pair(std::string(is_elsewhere ? declaration.substr(declaration.rfind(' ') + 1)
                                            : name_of(declaration)),
                   Field{*offset, *size, number_behind(line, "signed:") == 1, is_elsewhere});
}

base::Result<TraceFormat> TraceFormat::parse(std::string_view text) {
  TraceFormat format;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with("ID: ")) {
      format.id_ = static_cast<std::uint16_t>(number_behind(line, "ID: ").value_or(0));
    }
    if (auto field = parse_field(line)) format.fields_.insert(*std::move(field));
  }
  if (format.id_ == 0 || format.fields_.empty()) {
    return base::fail(base::ErrorCode::kInvalid, "not the description of a tracepoint");
  }
  return format;
}

std::optional<std::int64_t> TraceFormat::number(Record record, const std::string& name) const {
  const auto found = fields_.find(name);
  if (found == fields_.end()) return std::nullopt;
  const auto& [offset, size, is_signed, is_elsewhere] = found->second;
  if (!is_integer(size) || offset + size > record.size()) return std::nullopt;
  const std::uint64_t value = read_integer(record.substr(offset, size));
  return is_signed ? with_sign(value, size) : static_cast<std::int64_t>(value);
}

std::string TraceFormat::text(Record record, const std::string& name) const {
  const auto found = fields_.find(name);
  if (found == fields_.end()) return {};
  std::size_t offset = found->second.offset, size = found->second.size;
  if (found->second.is_elsewhere) {
    // The low half is the offset, the high one the size.
    const auto place = static_cast<std::uint32_t>(number(record, name).value_or(0));
    offset = place & 0xffff;
    size = place >> 16;
  }
  if (offset > record.size()) return {};
  const Record bytes = record.substr(offset, size);
  return base::printable(bytes.substr(0, bytes.find('\0')));
}

std::optional<std::uint16_t> type_of(Record record) {
  std::uint16_t type = 0;
  if (record.size() < sizeof type) return std::nullopt;
  std::memcpy(&type, record.data(), sizeof type);
  return type;
}

base::Result<std::filesystem::path> find_tracefs(const std::filesystem::path& sys) {
  std::error_code ignored;
  for (const char* place : {"kernel/tracing", "kernel/debug/tracing"}) {
    if (std::filesystem::exists(sys / place / "events", ignored)) return sys / place;
  }
  return base::fail(base::ErrorCode::kNotFound,
                    "the kernel's tracepoints cannot be read: run as root, and mount tracefs "
                    "(mount -t tracefs nodev /sys/kernel/tracing)");
}

base::Result<TraceFormat> read_format(const std::filesystem::path& tracefs,
                                      const std::string& tracepoint) {
  const auto text = base::read_file(tracefs / "events" / tracepoint / "format");
  if (!text) return unexpected(text.error());
  auto format = TraceFormat::parse(*text);
  if (!format) return unexpected(base::error_in("tracepoint " + tracepoint, format.error()));
  return format;
}

}  // namespace ka::cli::noise
