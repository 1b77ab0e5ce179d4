// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/clh/scripted_api.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/unix_socket.hpp"

namespace ka::tests {
namespace {

base::Fd listen_at(const std::filesystem::path& path) {
  base::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = base::unix_address(path).value();
  ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  ::listen(listener.get(), 1);
  return listener;
}

std::string read_question(int peer) {
  std::string question;
  char piece[512];
  while (!question.ends_with("\r\n\r\n")) {
    const ssize_t got = ::read(peer, piece, sizeof(piece));
    if (got <= 0) break;
    question.append(piece, static_cast<std::size_t>(got));
  }
  return question;
}

void send_in_pieces(int peer, std::string_view text) {
  constexpr std::size_t kPiece = 100;
  while (!text.empty()) {
    const std::size_t size = std::min(kPiece, text.size());
    if (::send(peer, text.data(), size, MSG_NOSIGNAL) < 0) return;
    text.remove_prefix(size);
  }
}

void wait_for_end(int peer) {
  char ignored = 0;
  while (::read(peer, &ignored, 1) > 0) {
  }
}

}  // namespace

std::string vm_info(int vcpus) {
  return R"({"config":{"cpus":{"boot_vcpus":)" + std::to_string(vcpus) +
         R"(,"max_vcpus":8,"topology":null,"kvm_hyperv":false,"max_phys_bits":46,"affinity":null,)" +
         R"("features":{}},"memory":{"size":536870912},"disks":null,"net":null,"devices":null,)" +
         R"("numa":null},"state":"Running","memory_actual_size":536870912,"device_tree":{}})";
}

std::string http_answer(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " \r\nServer: Cloud Hypervisor API\r\nConnection: keep-alive\r\nContent-Type: "
         "application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

ScriptedApi::ScriptedApi(const std::filesystem::path& socket, std::vector<std::string> answers)
    : listener_(listen_at(socket)) {
  thread_ = std::thread([this, answers = std::move(answers)] { serve(answers); });
}

ScriptedApi::~ScriptedApi() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

void ScriptedApi::serve(const std::vector<std::string>& answers) {
  for (const std::string& answer : answers) {
    const base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) return;
    questions.push_back(read_question(peer.get()));
    send_in_pieces(peer.get(), answer);
    if (answer.empty()) wait_for_end(peer.get());
  }
}

}  // namespace ka::tests
