// SPDX-License-Identifier: Apache-2.0
// A QMP server that follows a script and fails on a request that the script does not expect.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace ka::tests {

/// One step of a conversation.
struct Step {
  enum class Kind {
    kExpect,  ///< a command of this name must come; then `reply` is sent with its id put for $ID
    kSay,     ///< `reply` is sent unasked
    kWait,    ///< until the client hangs up
    kHangUp,  ///< the connection is closed and the next one awaited
  };
  Kind kind = Kind::kExpect;
  std::string name;
  std::string reply;
};

inline Step expect(std::string name, std::string reply) {
  return {Step::Kind::kExpect, std::move(name), std::move(reply)};
}
inline Step answer(std::string name, const std::string& value) {
  return expect(std::move(name), "{\"return\": " + value + ", \"id\": $ID}\r\n");
}
inline Step say(std::string text) { return {Step::Kind::kSay, "", std::move(text)}; }
inline Step wait() { return {Step::Kind::kWait, "", ""}; }
inline Step hang_up() { return {Step::Kind::kHangUp, "", ""}; }

/// Serves one client at a time, in a thread of its own, until the script ends.
class ScriptedQemu {
 public:
  ScriptedQemu(std::filesystem::path socket, std::vector<Step> script);
  ScriptedQemu(const ScriptedQemu&) = delete;
  ScriptedQemu& operator=(const ScriptedQemu&) = delete;
  ~ScriptedQemu();

  /// How many steps of the script have been played.
  std::size_t steps() const { return steps_; }
  /// Waits for the end of the script; empty, or what went against it.
  std::string failure();

 private:
  void run();
  bool play(const Step& step);
  bool accept();
  std::string read_line();
  void send(const std::string& text) const;

  std::filesystem::path path_;
  std::vector<Step> script_;
  int listener_ = -1;
  int client_ = -1;
  std::string buffer_;
  std::string failure_;
  std::atomic<std::size_t> steps_ = 0;
  std::thread thread_;
};

}  // namespace ka::tests
