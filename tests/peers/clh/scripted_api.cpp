// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/clh/scripted_api.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace ka::tests {
namespace {

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
    : server_(socket, std::move(answers),
              [this](int peer, const std::string& answer) { serve(peer, answer); }) {}

void ScriptedApi::serve(int peer, const std::string& answer) {
  questions.push_back(read_question(peer));
  send_in_pieces(peer, answer);
  if (answer.empty()) wait_for_end(peer);
}

}  // namespace ka::tests
