// SPDX-License-Identifier: Apache-2.0
#include "base/usage/last_words.hpp"

#include <algorithm>
#include <array>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace ka::usage {
namespace {

constexpr const char* kNoMemory = "out of memory; see MemoryMax= of the unit";

/// Of what may run out on a node.
constexpr std::array<std::pair<int, std::string_view>, 5> kLimits{{
    {EAGAIN, "TasksMax= of the unit and pids.max of the cgroups around it"},
    {EMFILE, "LimitNOFILE= of the unit"},
    {ENFILE, "fs.file-max"},
    {ENOMEM, "MemoryMax= of the unit, and the node's free memory"},
    {ENOSPC, "fs.epoll.max_user_watches and fs.inotify.max_user_watches"},
}};

std::string sentence(const std::string& what, int number) {
  const auto* limit = std::ranges::find(kLimits, number, &std::pair<int, std::string_view>::first);
  std::string text = what + ": " + std::generic_category().message(number);
  if (limit != kLimits.end()) text.append("; see ").append(limit->second);
  return text;
}

/// What precedes the text of the error code.
std::string context_of(const std::exception& error, const std::string& message) {
  const std::string text = error.what();
  const std::size_t end = text.find(": " + message);
  return end == std::string::npos ? std::string() : text.substr(0, end);
}

/// std::thread adds no words of its own.
std::string of_library(const std::system_error& error) {
  const int number = error.code().value();
  const std::string context = context_of(error, error.code().message());
  if (!context.empty()) return sentence(context, number);
  return sentence(number == EAGAIN ? "cannot start a thread" : "a system call failed", number);
}

std::string of_file(const std::filesystem::filesystem_error& error) {
  return sentence(error.path1().string(), error.code().value());
}

/// Asio names the part of it that failed, Boost the place in its own source.
std::string of_asio(const boost::system::system_error& error) {
  const std::string context = context_of(error, error.code().message());
  if (error.code().category() != boost::system::system_category()) {
    return context + (context.empty() ? "" : ": ") + error.code().message();
  }
  return sentence("the event loop failed" + (context.empty() ? "" : " (" + context + ')'),
                  error.code().value());
}

std::string describe(const std::exception& error) {
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return of_file(*file);
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    return of_library(*system);
  }
  if (const auto* asio = dynamic_cast<const boost::system::system_error*>(&error)) {
    return of_asio(*asio);
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return kNoMemory;
  return error.what();
}

}  // namespace

std::string last_words(const std::exception& error) {
  return base::printable(describe(error), base::kMaxPath + base::kMaxSentence);
}

void print_last_words(const char* program, const std::exception& error) noexcept {
  try {
    std::fprintf(stderr, "%s: fatal: %s\n", program, last_words(error).c_str());
  } catch (const std::exception&) {
    std::fprintf(stderr, "%s: fatal: %s\n", program, kNoMemory);
  }
}

}  // namespace ka::usage
