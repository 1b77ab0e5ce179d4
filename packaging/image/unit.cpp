// SPDX-License-Identifier: Apache-2.0
// Units of the node's systemd, from a pod: what the installer needs of systemctl, which itself does
// not work there. systemctl refuses a systemd whose process it cannot see (bus_check_peercred() in
// systemd's src/shared/bus-util.c), and a pod sees it only with hostPID.
#include <systemd/sd-bus.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr const char* kAddress = "unix:path=/run/systemd/private";
constexpr const char* kName = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
constexpr const char* kService = "org.freedesktop.systemd1.Service";
constexpr const char* kSocket = "org.freedesktop.systemd1.Socket";
constexpr std::chrono::seconds kJobLimit{120};
constexpr std::chrono::milliseconds kJobPoll{50};

constexpr std::string_view kUsage =
    "Usage: kata-affinity-unit reload\n"
    "       kata-affinity-unit start|restart|stop UNIT     wait; exit status 1 if it failed\n"
    "       kata-affinity-unit enable|disable|is-active UNIT\n"
    "       kata-affinity-unit file UNIT                   its unit file; empty: there is none\n";

[[noreturn]] void fail(const std::string& what, const char* reason) {
  std::fprintf(stderr, "kata-affinity: %s: %s\n", what.c_str(), reason);
  std::exit(1);
}

struct BusCloser {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
};
struct MessageFreer {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, MessageFreer>;

/// systemd, at the socket that systemctl uses for root. Ends the program when a call fails.
class Systemd {
 public:
  Systemd() {
    sd_bus* made = nullptr;
    int failed = sd_bus_new(&made);
    bus_.reset(made);
    if (failed >= 0) failed = sd_bus_set_address(made, kAddress);
    if (failed >= 0) failed = sd_bus_start(made);
    if (failed < 0) {
      fail("systemd at /run/systemd/private",
           failed == -ENOENT ? "no such socket: is /run/systemd mounted, and does the node run "
                               "systemd?"
                             : std::strerror(-failed));
    }
  }

  template <typename... Arguments>
  Message manager(const char* method, const char* types, Arguments... arguments) {
    sd_bus_error error{};
    sd_bus_message* reply = nullptr;
    if (sd_bus_call_method(bus_.get(), kName, kManagerPath, kManager, method, &error, &reply, types,
                           arguments...) < 0) {
      fail(method, error.message);
    }
    return Message(reply);
  }

  std::string text(const std::string& unit, const char* interface, const char* property) {
    sd_bus_error error{};
    char* value = nullptr;
    if (sd_bus_get_property_string(bus_.get(), kName, path_of(unit).c_str(), interface, property,
                                   &error, &value) < 0) {
      fail(unit, error.message);
    }
    const std::unique_ptr<char, decltype(&std::free)> owner(value, &std::free);
    return value;
  }

  bool has_job(const std::string& unit) {
    sd_bus_error error{};
    sd_bus_message* reply = nullptr;
    std::uint32_t job = 0;
    const char* path = nullptr;
    const int failed = sd_bus_get_property(bus_.get(), kName, path_of(unit).c_str(), kUnit, "Job",
                                           &error, &reply, "(uo)");
    const Message owner(reply);
    if (failed < 0) fail(unit, error.message);
    if (sd_bus_message_read(reply, "(uo)", &job, &path) < 0) fail(unit, "unexpected reply");
    return job != 0;
  }

 private:
  /// Loads it where it is not: every unit has an object then, also one without a file.
  std::string path_of(const std::string& unit) {
    const Message reply = manager("LoadUnit", "s", unit.c_str());
    const char* path = nullptr;
    if (sd_bus_message_read(reply.get(), "o", &path) < 0) fail(unit, "unexpected reply");
    return path;
  }

  std::unique_ptr<sd_bus, BusCloser> bus_;
};

/// Whether it went well: of a daemon that it is ready, of a oneshot that it succeeded.
bool run_job(Systemd& systemd, const char* method, const std::string& unit) {
  systemd.manager(method, "ss", unit.c_str(), "replace");
  const auto until = std::chrono::steady_clock::now() + kJobLimit;
  while (systemd.has_job(unit)) {
    if (std::chrono::steady_clock::now() > until) fail(unit, "not done after 120 s");
    std::this_thread::sleep_for(kJobPoll);
  }
  if (method == std::string_view("StopUnit")) return true;
  const std::string state = systemd.text(unit, kUnit, "ActiveState");
  const char* kind = std::string_view(unit).ends_with(".socket") ? kSocket : kService;
  return systemd.text(unit, kind, "Result") == "success" &&
         (state == "active" || state == "inactive");
}

bool enable(Systemd& systemd, const std::string& unit) {
  systemd.manager("EnableUnitFiles", "asbb", 1, unit.c_str(), 0, 1);
  systemd.manager("Reload", "");
  return true;
}

bool disable(Systemd& systemd, const std::string& unit) {
  systemd.manager("DisableUnitFiles", "asb", 1, unit.c_str(), 0);
  systemd.manager("Reload", "");
  return true;
}

bool print_file(Systemd& systemd, const std::string& unit) {
  std::printf("%s\n", systemd.text(unit, kUnit, "FragmentPath").c_str());
  return true;
}

struct Verb {
  std::string_view name;
  bool (*run)(Systemd& systemd, const std::string& unit);
};

constexpr Verb kVerbs[] = {
    {"start",
     [](Systemd& systemd, const std::string& unit) { return run_job(systemd, "StartUnit", unit); }},
    {"restart", [](Systemd& systemd,
                   const std::string& unit) { return run_job(systemd, "RestartUnit", unit); }},
    {"stop",
     [](Systemd& systemd, const std::string& unit) { return run_job(systemd, "StopUnit", unit); }},
    {"enable", enable},
    {"disable", disable},
    {"is-active",
     [](Systemd& systemd, const std::string& unit) {
       return systemd.text(unit, kUnit, "ActiveState") == "active";
     }},
    {"file", print_file},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view("reload")) {
    Systemd().manager("Reload", "");
    return 0;
  }
  const auto verb = argc == 3 ? std::ranges::find(kVerbs, std::string_view(argv[1]), &Verb::name)
                              : std::end(kVerbs);
  if (verb == std::end(kVerbs)) {
    std::fputs(kUsage.data(), stderr);
    return 2;
  }
  Systemd systemd;
  return verb->run(systemd, argv[2]) ? 0 : 1;
}
