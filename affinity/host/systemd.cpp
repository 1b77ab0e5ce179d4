// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/systemd.hpp"

#include <systemd/sd-bus.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string_view>
#include <variant>

#include "base/text.hpp"

namespace ka::host {
namespace {

using base::ErrorCode;
using base::Result;

constexpr std::uint64_t kCallTimeout = 500000;  ///< microseconds
constexpr std::chrono::milliseconds kWrittenPoll(1);
constexpr int kWrittenPolls = 100;
/// CGROUP_WEIGHT_INVALID in systemd's src/basic/cgroup-util.h: the unit has none of its own.
constexpr std::uint64_t kNoWeight = UINT64_MAX;
/// USEC_INFINITY in systemd's src/basic/time-util.h.
constexpr std::uint64_t kNoQuota = UINT64_MAX;
constexpr std::string_view kNoSuchUnit = "org.freedesktop.systemd1.NoSuchUnit";

struct BusCloser {
  void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
};
using Bus = std::unique_ptr<sd_bus, BusCloser>;

struct MessageFreer {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, MessageFreer>;

Result<Bus> connect(const std::filesystem::path& socket) {
  sd_bus* made = nullptr;
  if (const int failed = sd_bus_new(&made); failed < 0) {
    return base::fail_errno(-failed, "systemd");
  }
  Bus bus(made);
  int failed = sd_bus_set_address(made, ("unix:path=" + socket.string()).c_str());
  if (failed >= 0) failed = sd_bus_set_method_call_timeout(made, kCallTimeout);
  if (failed >= 0) failed = sd_bus_start(made);
  if (failed >= 0) return bus;
  return base::fail(ErrorCode::kUnavailable, base::system_error(-failed, "systemd").message);
}

using Mask = std::vector<std::uint8_t>;
using Value = std::variant<Mask, std::uint64_t>;

/// Appends the variant ("v") of a property.
struct Append {
  sd_bus_message* message;

  int operator()(const Mask& mask) const {
    int failed = sd_bus_message_open_container(message, 'v', "ay");
    if (failed >= 0) failed = sd_bus_message_append_array(message, 'y', mask.data(), mask.size());
    return failed >= 0 ? sd_bus_message_close_container(message) : failed;
  }
  int operator()(std::uint64_t number) const {
    return sd_bus_message_append(message, "v", "t", number);
  }
};

/// SetUnitProperties(in s name, in b runtime, in a(sv) properties): org.freedesktop.systemd1(5).
Result<Message> make_call(sd_bus* bus, const std::string& unit, const char* property,
                          const Value& value) {
  sd_bus_message* made = nullptr;
  int failed = sd_bus_message_new_method_call(
      bus, &made, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
      "org.freedesktop.systemd1.Manager", "SetUnitProperties");
  Message message(made);
  if (failed >= 0) failed = sd_bus_message_append(made, "sb", unit.c_str(), 1);
  if (failed >= 0) failed = sd_bus_message_open_container(made, 'a', "(sv)");
  if (failed >= 0) failed = sd_bus_message_open_container(made, 'r', "sv");
  if (failed >= 0) failed = sd_bus_message_append(made, "s", property);
  if (failed >= 0) failed = std::visit(Append{made}, value);
  for (int open = 0; open < 2 && failed >= 0; ++open) {
    failed = sd_bus_message_close_container(made);
  }
  if (failed < 0) return base::fail_errno(-failed, "systemd");
  return message;
}

base::Error to_error(int failed, const sd_bus_error& error, const std::string& unit) {
  const std::string_view name = error.name == nullptr ? "" : error.name;
  const std::string text =
      "systemd, of " + unit + ": " +
      (error.message == nullptr ? "no response"
                                : base::printable(error.message, base::kMaxSentence));
  if (name == kNoSuchUnit) return {ErrorCode::kNotFound, text, -failed};
  if (failed == -ETIMEDOUT || failed == -ECONNRESET) {
    return {ErrorCode::kTransient, text, -failed};
  }
  return {base::classify_errno(-failed), text, -failed};
}

Result<void> set_property(const std::filesystem::path& socket, const std::string& unit,
                          const char* property, const Value& value) {
  const auto bus = connect(socket);
  if (!bus) return unexpected(bus.error());
  const auto call = make_call(bus->get(), unit, property, value);
  if (!call) return unexpected(call.error());
  sd_bus_error error{};
  const int failed = sd_bus_call(bus->get(), call->get(), kCallTimeout, &error, nullptr);
  Result<void> result;
  if (failed < 0) result = unexpected(to_error(failed, error, unit));
  sd_bus_error_free(&error);
  return result;
}

}  // namespace

Result<void> set_allowed_cpus(const std::filesystem::path& socket, const std::string& unit,
                              const policy::CpuSet& cpus) {
  return set_property(socket, unit, "AllowedCPUs", to_mask(cpus));
}

Result<void> set_allowed_nodes(const std::filesystem::path& socket, const std::string& unit,
                               const policy::NodeSet& nodes) {
  return set_property(socket, unit, "AllowedMemoryNodes", to_mask(nodes));
}

Result<void> set_io_weight(const std::filesystem::path& socket, const std::string& unit,
                           std::optional<int> weight) {
  const std::uint64_t value = weight ? static_cast<std::uint64_t>(*weight) : kNoWeight;
  return set_property(socket, unit, "IOWeight", value);
}

Result<void> set_cpu_quota(const std::filesystem::path& socket, const std::string& unit,
                           std::optional<std::uint64_t> per_second) {
  return set_property(socket, unit, "CPUQuotaPerSecUSec", per_second.value_or(kNoQuota));
}

bool is_no_unit(const base::Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kNotFound;
}

Result<void> wait_for_systemd(const base::Clock& clock, const std::filesystem::path& file,
                              const std::function<bool()>& is_written) {
  for (int poll = 0; poll < kWrittenPolls; ++poll) {
    if (is_written()) return {};
    clock.sleep(kWrittenPoll);
  }
  return base::fail(ErrorCode::kTransient, "systemd has not written " + file.string() + " yet");
}

}  // namespace ka::host
