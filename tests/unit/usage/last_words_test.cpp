// SPDX-License-Identifier: Apache-2.0
#include "base/usage/last_words.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <new>
#include <system_error>

#include "tests/catch.hpp"
#include "tests/few_descriptors.hpp"

using namespace ka;
using usage::last_words;

TEST_CASE("last words name what failed, why, and the limit to look at") {
  CHECK(last_words(std::system_error(EAGAIN, std::generic_category())) ==
        "cannot start a thread: Resource temporarily unavailable; see TasksMax= of the unit and "
        "pids.max of the cgroups around it");
  CHECK(last_words(std::system_error(EPERM, std::generic_category())) ==
        "a system call failed: Operation not permitted");
  CHECK(last_words(std::filesystem::filesystem_error(
            "status", "/sys/a\n", std::error_code(ENOMEM, std::generic_category()))) ==
        "/sys/a\\x0a: Cannot allocate memory; see MemoryMax= of the unit, and the node's free "
        "memory");
  CHECK(last_words(std::bad_alloc()) == "out of memory; see MemoryMax= of the unit");
  CHECK(last_words(std::runtime_error("a reason")) == "a reason");
}

TEST_CASE("last words have no place in Boost's source") {
  if (tests::has_sanitizers()) return;
  boost::asio::io_context io(1);
  const tests::FewDescriptors few;
  const std::vector<base::Fd> taken = tests::open_all();
  try {
    const boost::asio::signal_set signals(io, SIGTERM);
    FAIL("signals without descriptors");
  } catch (const std::exception& error) {
    const std::string words = last_words(error);
    CAPTURE(words);
    CHECK(words.starts_with("the event loop failed ("));
    CHECK(words.ends_with("): Too many open files; see LimitNOFILE= of the unit"));
    CHECK(words.find('[') == std::string::npos);
  }
  CHECK(last_words(boost::system::system_error(boost::asio::error::eof, "read")) ==
        "read: End of file");
}
