// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/daemon/programs.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/newline.hpp"
#include "base/unix_socket.hpp"
#include "tests/catch.hpp"

namespace ka::tests {
namespace {

using std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr auto kPause = std::chrono::milliseconds(10);

/// Runs `start` with standard output and error in a file, in a child.
int spawn(const std::vector<std::string>& arguments, const fs::path& output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int pid = ::fork();
  if (pid != 0) return pid;
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(file, 1);
  ::dup2(file, 2);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

base::Fd connect_to(const std::string& path) {
  auto connected = base::connect_unix(path, std::chrono::seconds{10});
  return connected ? std::move(*connected) : base::Fd();
}

std::string talk(const std::string& path, const std::string& bytes) {
  const base::Fd fd = connect_to(path);
  if (!fd) return {};
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) break;
    at += static_cast<std::size_t>(sent);
  }
  std::string answer;
  char block[65536];
  for (ssize_t size; (size = ::recv(fd.get(), block, sizeof(block), 0)) > 0;) {
    answer.append(block, static_cast<std::size_t>(size));
  }
  return answer;
}

std::vector<std::string> qemu(const fs::path& directory, int vcpus) {
  const std::string monitor = ",server=on,wait=off";
  return {"qemu-system-x86_64",
          "-machine",
          "q35",
          "-accel",
          "tcg,thread=multi",
          "-smp",
          std::to_string(vcpus) + ",maxcpus=" + std::to_string(vcpus + 1),
          "-m",
          "64",
          "-display",
          "none",
          "-nodefaults",
          "-S",
          "-name",
          "test,debug-threads=on",
          "-object",
          "iothread,id=io1",
          "-qmp",
          "unix:" + (directory / "qmp").string() + monitor,
          "-qmp",
          "unix:" + (directory / "own").string() + monitor};
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments, const fs::path& output)
    : pid_(spawn(arguments, output)) {}

Program::~Program() {
  if (!runs()) return;
  send(SIGKILL);
  wait();
}

void Program::send(int signal) const { ::kill(pid_, signal); }

bool Program::runs() {
  if (status_ >= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

double Program::cpu_seconds() const {
  std::istringstream stat(read_text("/proc/" + std::to_string(pid_) + "/stat"));
  std::string skipped;
  for (int i = 0; i < 13; ++i) stat >> skipped;
  long user = 0, system = 0;
  stat >> user >> system;
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int Program::wait(Seconds limit) {
  eventually([this] { return !runs(); }, limit);
  return status_;
}

bool eventually(const std::function<bool()>& holds, Seconds limit) {
  const auto end = steady_clock::now() + limit;
  while (!holds()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

std::string read_text(const fs::path& path) { return base::read_file(path).value_or(""); }

Ended run(const std::vector<std::string>& arguments, const fs::path& output) {
  fs::remove(output);
  Program program(arguments, output);
  const int exit = program.wait(Seconds(30));
  return {exit, read_text(output)};
}

Vm::Vm(const fs::path& directory, int vcpus)
    : directory_(directory),
      vcpus_(vcpus),
      program_(qemu(directory, vcpus), directory / "qemu.log") {
  const std::string last = "CPU " + std::to_string(vcpus - 1) + "/TCG";
  const bool up = eventually([&] { return thread(last) > 0 && connect_to(monitor()); });
  INFO(read_text(directory / "qemu.log"));
  REQUIRE(up);
}

bool Vm::possible() {
  if (!has_two_cpus()) return false;
  if (std::system("command -v qemu-system-x86_64 > /dev/null") == 0) return true;
  std::cout << "skipped: no qemu-system-x86_64\n";
  return false;
}

void Vm::plug_vcpu() {
  const base::Fd fd = connect_to((directory_ / "own").string());
  const std::string words =
      R"({"execute":"qmp_capabilities"}{"execute":"device_add","arguments":)"
      R"({"driver":"qemu64-x86_64-cpu","id":"plugged","socket-id":0,"thread-id":0,"core-id":)" +
      std::to_string(vcpus_) + "}}";
  REQUIRE(::send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(words.size()));
  const bool plugged =
      eventually([&] { return thread("CPU " + std::to_string(vcpus_) + "/TCG") > 0; });
  REQUIRE(plugged);
}

std::vector<std::pair<std::string, int>> Vm::threads() const {
  std::vector<std::pair<std::string, int>> threads;
  const fs::path tasks = "/proc/" + std::to_string(pid()) + "/task";
  for (const int tid : base::list_numbers(tasks).value_or(std::vector<int>{})) {
    threads.emplace_back(base::without_newline(read_text(tasks / std::to_string(tid) / "comm")),
                         tid);
  }
  return threads;
}

int Vm::thread(const std::string& name) const {
  for (const auto& [known, tid] : threads()) {
    if (known == name) return tid;
  }
  return 0;
}

bool has_two_cpus() {
  if (allowed(static_cast<int>(::getpid())).size() >= 2) return true;
  std::cout << "skipped: one CPU is not enough\n";
  return false;
}

policy::CpuSet allowed(int tid) {
  std::istringstream status(read_text("/proc/" + std::to_string(tid) + "/status"));
  constexpr std::string_view kKey = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    return policy::parse_list<policy::CpuTag>(line.substr(kKey.size())).value();
  }
  return {};
}

DaemonScene::DaemonScene(const std::string& configuration) { configure(configuration); }

void DaemonScene::configure(const std::string& configuration) const {
  const auto none_unless_named = [&](const std::string& key) {
    return configuration.find(key) == std::string::npos ? key + " = \"\"\n" : std::string();
  };
  temp_.write("affinity.toml", "[affinity]\n" + configuration + none_unless_named("nri_socket") +
                                   none_unless_named("kubelet_state"));
}

std::vector<std::string> DaemonScene::command() const {
  return {KA_DAEMON,
          "--config",
          path("affinity.toml").string(),
          "--socket",
          socket(),
          "--state-dir",
          path("state").string(),
          "--run",
          temp_.path().string()};
}

void DaemonScene::start() {
  daemon_.reset();
  std::vector<std::string> whole = wrapper_;
  for (std::string& word : command()) whole.push_back(std::move(word));
  daemon_ = std::make_unique<Program>(whole, path("log"));
  const bool answers = eventually([this] { return !daemon_->runs() || connect_to(socket()); });
  INFO(log());
  REQUIRE(answers);
  REQUIRE(daemon_->runs());
}

Ended DaemonScene::ctl(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), KA_CTL);
  arguments.insert(arguments.end(), {"--socket", socket()});
  return run(arguments, path("ctl.out"));
}

std::string DaemonScene::raw(const std::string& bytes) const { return talk(socket(), bytes); }

double DaemonScene::metric(const std::string& name) const {
  std::istringstream page(raw("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"));
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(name + ' ')) return std::stod(line.substr(name.size()));
  }
  return -1;
}

}  // namespace ka::tests
