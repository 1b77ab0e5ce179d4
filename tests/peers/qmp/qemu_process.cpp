// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/qmp/qemu_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

namespace ka::tests {
namespace {

using namespace std::chrono_literals;

constexpr const char* kQemu = "/usr/bin/qemu-system-x86_64";
constexpr int kTimeout = 10000;  // milliseconds

[[noreturn]] void become(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::execv(kQemu, pointers.data());
  ::_exit(127);
}

}  // namespace

bool have_qemu() { return ::access(kQemu, X_OK) == 0; }

QemuProcess::QemuProcess(const std::vector<std::string>& arguments) {
  const std::string dir = dir_.path().string();
  std::vector<std::string> all = {kQemu,
                                  "-machine",
                                  "q35,accel=tcg",
                                  "-nodefaults",
                                  "-display",
                                  "none",
                                  "-m",
                                  "64",
                                  "-smp",
                                  "2,maxcpus=4,sockets=4,cores=1,threads=1",
                                  "-qmp",
                                  "unix:" + dir + "/ours.sock,server=on,wait=off",
                                  "-qmp",
                                  "unix:" + dir + "/test.sock,server=on,wait=off"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  pid_ = ::fork();
  if (pid_ == 0) become(std::move(all));
  for (int tries = 0; tries < 200 && !connect(); ++tries) std::this_thread::sleep_for(50ms);
  while (fd_ >= 0 && !session_.ready()) send(receive().to_send);
}

QemuProcess::~QemuProcess() {
  if (fd_ >= 0) ::close(fd_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool QemuProcess::connect() {
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (dir_.path() / "test.sock").native().copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  ::close(fd_);
  fd_ = -1;
  return false;
}

void QemuProcess::send(const std::string& bytes) const {
  static_cast<void>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

qmp::Session::Received QemuProcess::receive() {
  std::array<char, 65536> chunk{};
  pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
  const bool came = ::poll(&entry, 1, kTimeout) == 1;
  const ssize_t got = came ? ::read(fd_, chunk.data(), chunk.size()) : 0;
  if (got <= 0) {
    ::close(fd_);
    fd_ = -1;
    return {};
  }
  auto received = session_.feed(std::string_view(chunk.data(), static_cast<std::size_t>(got)));
  return received ? std::move(*received) : qmp::Session::Received{};
}

base::Result<boost::json::value> QemuProcess::execute(std::string_view name,
                                                      const boost::json::object& arguments) {
  if (!session_.ready()) return base::fail(base::ErrorCode::kUnavailable, "QEMU does not answer");
  const qmp::Session::Command command = session_.command(name, arguments);
  send(command.bytes);
  while (fd_ >= 0) {
    for (qmp::News& news : receive().news) {
      auto* answer = std::get_if<qmp::Answer>(&news);
      if (answer != nullptr && answer->id == command.id) return std::move(answer->result);
    }
  }
  return base::fail(base::ErrorCode::kUnavailable, "QEMU does not answer");
}

base::Result<boost::json::value> QemuProcess::plug_vcpu(int socket) {
  return execute("device_add", {{"driver", "qemu64-x86_64-cpu"},
                                {"id", "cpu" + std::to_string(socket)},
                                {"socket-id", socket},
                                {"core-id", 0},
                                {"thread-id", 0}});
}

std::string ejecting_guest() {
  // The ports of q35: selector 0xcd8, flags 0xcdc. Writing 0 to the selector switches to the
  // interface that knows ejection; flag 4 asks for one, flag 8 does it.
  constexpr std::array<unsigned char, 46> kCode = {
      0xfb,                                // sti
      0xba, 0xd8, 0x0c,                    // mov dx, 0xcd8
      0x66, 0x31, 0xc0,                    // xor eax, eax
      0x66, 0xef,                          // out dx, eax
      0x66, 0xbb, 0x01, 0x00, 0x00, 0x00,  // again: mov ebx, 1
      0xba, 0xd8, 0x0c,                    // next: mov dx, 0xcd8
      0x66, 0x89, 0xd8,                    // mov eax, ebx
      0x66, 0xef,                          // out dx, eax
      0xba, 0xdc, 0x0c,                    // mov dx, 0xcdc
      0xec,                                // in al, dx
      0xa8, 0x04,                          // test al, 4
      0x74, 0x03,                          // jz skip
      0xb0, 0x08,                          // mov al, 8
      0xee,                                // out dx, al
      0x66, 0x43,                          // skip: inc ebx
      0x66, 0x83, 0xfb, 0x04,              // cmp ebx, 4
      0x72, 0xe5,                          // jb next
      0xf4, 0x90,                          // hlt (until the timer ticks), nop
      0xeb, 0xdb,                          // jmp again
  };
  constexpr std::size_t kSize = 8 << 20;  // SeaBIOS passes over a disk without a whole cylinder
  std::string disk(kSize, '\0');
  for (std::size_t i = 0; i < kCode.size(); ++i) disk[i] = static_cast<char>(kCode[i]);
  disk[510] = '\x55';
  disk[511] = '\xaa';
  return disk;
}

}  // namespace ka::tests
