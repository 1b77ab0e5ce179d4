// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/rdt_facts.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/files.hpp"
#include "base/newline.hpp"
#include "base/split.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::plan::BandwidthFacts;
using policy::plan::CacheFacts;
using policy::plan::RdtFacts;
using policy::plan::Schemata;

constexpr int kHex = 16;
constexpr int kMostGroups = 1 << 16;

/// Numbers of info/, and the first thing that is wrong with them.
class Info {
 public:
  Info(const Resctrl& resctrl, std::string resource)
      : resctrl_(resctrl), resource_(std::move(resource)) {}

  int number(const char* name) {
    const auto text = read(name);
    const auto value = text ? base::parse_number(*text) : unexpected(text.error());
    if (value && *value >= 0 && *value <= kMostGroups) return static_cast<int>(*value);
    fail(name);
    return 0;
  }

  /// A file that older kernels do not have.
  bool flag(const char* name) {
    const auto text = read(name);
    return text && *text == "1\n";
  }

  std::uint32_t mask(const char* name) {
    const std::string text = base::without_newline(read(name).value_or(""));
    std::uint32_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, kHex);
    if (error != std::errc() || stop != end || value == 0) fail(name);
    return value;
  }

  const std::optional<std::string>& wrong() const { return wrong_; }

 private:
  std::string path(const char* name) const { return "info/" + resource_ + '/' + name; }
  Result<std::string> read(const char* name) const { return resctrl_.read(path(name)); }
  void fail(const char* name) {
    if (!wrong_) wrong_ = "resctrl: " + path(name) + " cannot be understood";
  }

  const Resctrl& resctrl_;
  std::string resource_;
  std::optional<std::string> wrong_;
};

std::vector<int> domains_of(const std::map<int, std::uint32_t>& values) {
  std::vector<int> domains;
  for (const auto& [domain, value] : values) domains.push_back(domain);
  return domains;
}

CacheFacts read_cache(Info& info) {
  return {.mask = info.mask("cbm_mask"),
          .min_bits = info.number("min_cbm_bits"),
          .sparse = info.flag("sparse_masks"),
          .domains = {}};
}

/// Where throttling is not linear, on AMD, values are no percentages; with mba_MBps neither.
BandwidthFacts read_bandwidth(Info& info, const std::string& options) {
  const bool is_absolute = base::has_part(options, ',', "mba_MBps");
  return {.min = info.number("min_bandwidth"),
          .granularity = info.number("bandwidth_gran"),
          .percent = !is_absolute && info.flag("delay_linear"),
          .domains = {}};
}

/// One resource, if the machine has it; the number of groups is that of the one with the fewest.
template <typename Facts, typename Read>
Result<void> add(const Resctrl& resctrl, const Schemata& root, const char* resource,
                 RdtFacts& facts, std::optional<Facts>& into, Read read) {
  const auto found = root.find(resource);
  if (found == root.end()) return {};
  Info info(resctrl, resource);
  into = read(info);
  into->domains = domains_of(found->second);
  const int groups = info.number("num_closids");
  facts.groups = facts.groups == 0 ? groups : std::min(facts.groups, groups);
  if (info.wrong()) return base::fail(ErrorCode::kInvalid, *info.wrong());
  return {};
}

Result<Schemata> root_schemata(const Resctrl& resctrl) {
  const auto text = resctrl.read("schemata");
  if (!text) return unexpected(text.error());
  auto schemata = policy::plan::parse_schemata(*text);
  if (schemata) return *std::move(schemata);
  return base::fail(ErrorCode::kInvalid, "resctrl: schemata cannot be understood");
}

}  // namespace

Result<RdtFacts> read_rdt_facts(const Resctrl& resctrl) {
  const auto options = resctrl.options();
  if (!options) return unexpected(options.error());
  const auto root = root_schemata(resctrl);
  if (!root) return unexpected(root.error());
  RdtFacts facts;
  const auto bandwidth = [&options](Info& info) { return read_bandwidth(info, *options); };
  auto done = add(resctrl, *root, "L3", facts, facts.l3, read_cache);
  if (done) done = add(resctrl, *root, "L2", facts, facts.l2, read_cache);
  if (done) done = add(resctrl, *root, "MB", facts, facts.mba, bandwidth);
  if (!done) return unexpected(done.error());
  return facts;
}

}  // namespace ka::helper
