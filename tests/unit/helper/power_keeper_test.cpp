// SPDX-License-Identifier: Apache-2.0
// Power settings of CPUs: changed, kept, recorded, refused, and put back.
#include "affinity/helper/power_keeper.hpp"

#include "tests/catch.hpp"
#include "tests/fake_cpu_power.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace ka::helper;

namespace {

/// Four CPUs with idle states, and a governor each.
struct Scene {
  Scene() {
    for (int cpu = 0; cpu < 4; ++cpu) {
      set(cpu, "power/pm_qos_resume_latency_us", "0");
      set(cpu, "cpufreq/scaling_available_governors", "performance powersave");
      set(cpu, "cpufreq/scaling_governor", "powersave");
      set(cpu, "cpufreq/affected_cpus", std::to_string(cpu));
    }
    before = power.values;
    restart();
  }

  void set(int cpu, std::string_view file, const std::string& value) const {
    power.values[tests::FakeCpuPower::name_of(cpu, file)] = value;
  }
  void drop(int cpu, std::string_view file) const {
    power.values.erase(tests::FakeCpuPower::name_of(cpu, file));
  }
  std::string latency(int cpu) const {
    return power.read(cpu, "power/pm_qos_resume_latency_us").value();
  }
  std::string governor(int cpu) const {
    return power.read(cpu, "cpufreq/scaling_governor").value();
  }
  RecordFile<PowerRecords> file() const { return {dir.path(), "boot"}; }
  /// A helper that was killed and started again.
  void restart() {
    keeper.emplace(power, file(), logger);
    keeper->adopt();
  }
  bool is_as_before() const { return power.values == before && !keeper->holds(); }

  tests::FakeCpuPower power;
  std::map<std::string, std::string> before;
  tests::TempDir dir;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);
  std::optional<PowerKeeper> keeper;
};

}  // namespace

TEST_CASE("CPUs are at full power, no others, and what they were in the end") {
  Scene scene;
  scene.keeper->keep({2, 3});
  CHECK(scene.latency(2) == "n/a");
  CHECK(scene.governor(3) == "performance");
  CHECK(scene.governor(1) == "powersave");
  CHECK(scene.keeper->problem_of({2, 3}).empty());
  scene.power.writes = 0;
  scene.keeper->check();
  CHECK(scene.power.writes == 0);
  scene.keeper->keep({3});
  CHECK(scene.latency(2) == "0");
  CHECK(scene.latency(3) == "n/a");
  scene.keeper->keep({});
  CHECK(scene.is_as_before());
  CHECK_FALSE(std::filesystem::exists(scene.file().path()));
}

TEST_CASE("what another program writes is repaired, and is what comes back") {
  Scene scene;
  scene.keeper->keep({2});
  scene.set(2, "cpufreq/scaling_governor", "schedutil");
  scene.keeper->check();
  CHECK(scene.governor(2) == "performance");
  scene.keeper->keep({});
  CHECK(scene.governor(2) == "schedutil");

  scene.keeper->keep({2});
  scene.set(2, "power/pm_qos_resume_latency_us", "100");
  scene.keeper->keep({});
  CHECK(scene.latency(2) == "100");
}

TEST_CASE("a helper that was killed: the next one keeps, and restores") {
  Scene scene;
  scene.keeper->keep({2});
  scene.restart();
  CHECK(scene.keeper->holds());
  scene.keeper->check();
  CHECK(scene.latency(2) == "n/a");
  scene.keeper->keep({});
  CHECK(scene.is_as_before());
}

TEST_CASE("what a CPU had is recorded before it is changed") {
  Scene scene;
  bool all = true;
  scene.power.before_write = [&](std::string_view) {
    const auto records = scene.file().load();
    if (!records || !records->values.contains({2, PowerSetting::kLatency})) all = false;
  };
  scene.keeper->keep({2});
  CHECK(all);
}

TEST_CASE("a machine without these files has nothing to change") {
  Scene scene;
  scene.power.values.clear();
  scene.keeper->keep({2});
  CHECK(scene.keeper->problem_of({2}).empty());
  CHECK_FALSE(std::filesystem::exists(scene.file().path()));
}

TEST_CASE("a preference stands in for a governor that is not offered") {
  Scene scene;
  scene.set(2, "cpufreq/scaling_available_governors", "powersave");
  scene.set(2, "cpufreq/energy_performance_available_preferences", "default performance power");
  scene.set(2, "cpufreq/energy_performance_preference", "power");
  scene.keeper->keep({2});
  CHECK(scene.governor(2) == "powersave");
  CHECK(scene.power.read(2, "cpufreq/energy_performance_preference") == "performance");
  scene.keeper->keep({});
  CHECK(scene.power.read(2, "cpufreq/energy_performance_preference") == "power");
}

TEST_CASE("a frequency that other CPUs share stays as it is, and is named") {
  Scene scene;
  scene.set(2, "cpufreq/affected_cpus", "2 3");
  scene.keeper->keep({2});
  CHECK(scene.governor(2) == "powersave");
  CHECK(scene.latency(2) == "n/a");
  CHECK(scene.keeper->problem_of({2}) ==
        "CPU 2: it shares its frequency with CPU 3, which is not to have the same governor");
  CHECK(scene.keeper->problems().at(2).latency.empty());
  scene.keeper->keep({2, 3});
  CHECK(scene.governor(2) == "performance");
  CHECK(scene.keeper->problem_of({2}).empty());
}

TEST_CASE("a setting that the kernel refuses is named; a CPU that went offline is none") {
  Scene scene;
  scene.power.refused = {"2/power/pm_qos_resume_latency_us"};
  scene.keeper->keep({2});
  CHECK(scene.keeper->problem_of({2}).find("CPU 2: ") == 0);
  scene.power.refused.clear();
  scene.keeper->keep({2});
  for (const char* file : {"cpufreq/scaling_governor", "cpufreq/scaling_available_governors"}) {
    scene.drop(2, file);
  }
  scene.keeper->check();
  CHECK(scene.keeper->problem_of({2}).empty());
  scene.keeper->keep({});
  CHECK_FALSE(scene.keeper->holds());
}

TEST_CASE("a damaged record of power settings: nothing is written, and it says why") {
  Scene scene;
  scene.dir.write("power.json", "{");
  scene.restart();
  scene.keeper->keep({2});
  CHECK(scene.power.values == scene.before);
  CHECK(scene.keeper->problem_of({2}).find("nothing is written") != std::string::npos);
}

TEST_CASE("a preference that a driver changes with the governor is put back") {
  Scene scene;
  struct Killed {};
  const bool is_killed = GENERATE(false, true);
  scene.set(2, "cpufreq/energy_performance_preference", "power");
  scene.power.before_write = [&](std::string_view file) {
    if (file != "cpufreq/scaling_governor") return;
    scene.set(2, "cpufreq/energy_performance_preference", "performance");
    scene.set(2, "cpufreq/scaling_governor", "performance");
    if (is_killed) throw Killed{};
  };
  if (is_killed) {
    CHECK_THROWS_AS(scene.keeper->keep({2}), Killed);
    scene.restart();
  } else {
    scene.keeper->keep({2});
  }
  scene.power.before_write = {};
  CHECK(scene.governor(2) == "performance");
  scene.keeper->keep({});
  CHECK(scene.governor(2) == "powersave");
  CHECK(scene.power.read(2, "cpufreq/energy_performance_preference") == "power");
}

TEST_CASE("a preference that others write meanwhile stays") {
  Scene scene;
  scene.set(2, "cpufreq/energy_performance_preference", "power");
  scene.keeper->keep({2});
  scene.set(2, "cpufreq/energy_performance_preference", "balance_power");
  scene.keeper->check();
  scene.keeper->keep({});
  CHECK(scene.governor(2) == "powersave");
  CHECK(scene.power.read(2, "cpufreq/energy_performance_preference") == "balance_power");
}

TEST_CASE("requests replace one another, and what others had comes back in the end") {
  Scene scene;
  scene.keeper->request({{2, {"20", "powersave", true}}, {3, {"", "powersave", true}}});
  CHECK(scene.latency(2) == "20");
  scene.keeper->request({{2, {"n/a", "performance", true}}});
  CHECK(scene.latency(2) == "n/a");
  CHECK(scene.governor(2) == "performance");
  scene.restart();
  CHECK(scene.keeper->requested() == policy::PowerRequests{{2, {"n/a", "performance", true}}});
  scene.keeper->check();
  CHECK(scene.latency(2) == "n/a");
  scene.keeper->request({{2, {"", "performance", true}}});
  CHECK(scene.latency(2) == "0");
  scene.keeper->request({});
  CHECK(scene.is_as_before());
}

TEST_CASE("full power ends where a request remains, and the other way round") {
  Scene scene;
  scene.keeper->keep({2});
  scene.keeper->request({{2, {"20", "", true}}});
  CHECK(scene.latency(2) == "20");
  CHECK(scene.governor(2) == "performance");
  scene.keeper->keep({});
  CHECK(scene.latency(2) == "20");
  CHECK(scene.governor(2) == "powersave");
  scene.keeper->keep({2});
  scene.keeper->request({});
  CHECK(scene.latency(2) == "n/a");
  scene.keeper->keep({});
  CHECK(scene.is_as_before());
}
