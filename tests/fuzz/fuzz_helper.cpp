// SPDX-License-Identifier: Apache-2.0
// The helper's records may be cut short or damaged: they are refused, or what they hold is written
// back the same. So may requests be, and resctrl's own texts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "affinity/helper/partition_service.hpp"
#include "affinity/helper/power_records.hpp"
#include "affinity/helper/quota_records.hpp"
#include "affinity/helper/quota_service.hpp"
#include "affinity/helper/rdt_service.hpp"
#include "affinity/helper/record_file.hpp"
#include "affinity/helper/service.hpp"
#include "tests/fuzz/require.hpp"
#include "tests/text_log.hpp"

using ka::tests::require;

namespace {

template <typename Records>
void read_record(std::string_view text) {
  static const std::string kBoot = "5f0f1c2e-0000-4000-8000-000000000000";
  if (const auto records = ka::helper::from_text<Records>(text, kBoot)) {
    const auto again = ka::helper::from_text<Records>(ka::helper::to_text(*records, kBoot), kBoot);
    require(again && *again == *records);
  }
}

void read_groups(std::string_view text) {
  if (const auto groups = ka::helper::read_groups(text)) {
    require(groups->size() <= ka::helper::kMostRdtGroups);
    for (const auto& group : *groups) require(!group.shares.empty());
  }
  if (const auto home = ka::helper::parse_home(text)) {
    require(home->group.empty() || ka::helper::is_group_name(home->group));
  }
  using ka::policy::plan::format_schemata;
  using ka::policy::plan::parse_schemata;
  if (const auto schemata = parse_schemata(text)) {
    require(parse_schemata(format_schemata(*schemata)).has_value());
  }
}

void read_partitions(std::string_view text) {
  const auto partitions = ka::helper::read_partitions(text);
  if (!partitions) return;
  require(partitions->size() <= ka::helper::kMostPartitions);
  for (const auto& one : *partitions) {
    require(!one.cpus.empty());
    for (const auto& vcpu : one.vcpus) require(vcpu.pid == one.vmm.pid);
  }
}

void read_quota_threads(std::string_view text) {
  const auto threads = ka::helper::read_quota_threads(text);
  if (!threads) return;
  require(threads->size() <= ka::helper::kMostQuotaThreads);
  for (const auto& thread : *threads) require(thread.tid > 0);
}

/// The host has no masks here: what counts is which CPUs are taken.
void answer_request(std::string_view body) {
  static std::string lines;
  lines.clear();
  const ka::log::Log log = ka::tests::text_log(ka::log::Level::kError, lines);
  ka::helper::Keeper keeper(
      {}, ka::helper::RecordFile<ka::helper::MaskRecords>("/nonexistent", "boot"), log);
  ka::helper::Service service(
      keeper, {},
      {[]() -> ka::base::Result<ka::helper::Limits> { return ka::helper::Limits{}; },
       [](const ka::policy::CpuSet&) { return std::nullopt; }});
  const auto response =
      ka::helper::respond({{ka::helper::Service::kPath, service.verb()}},
                          {.method = "POST", .target = "/v1/quiet", .body = std::string(body)});
  require(response.status == 200 || response.status == 400);
  require(keeper.quiet().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_record<ka::helper::MaskRecords>(text);
  read_record<ka::helper::RdtRecords>(text);
  read_record<ka::helper::PartitionRecords>(text);
  read_record<ka::helper::PowerRecords>(text);
  read_record<ka::helper::QuotaRecords>(text);
  read_groups(text);
  read_partitions(text);
  read_quota_threads(text);
  answer_request(text);
  return 0;
}
