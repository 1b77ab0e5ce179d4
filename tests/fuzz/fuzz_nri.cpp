// SPDX-License-Identifier: Apache-2.0
// What comes from the container runtime's socket, as one NRI session takes it.
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "shim-ext/nri/session.hpp"
#include "tests/text_log.hpp"

using namespace ka;

namespace {

class Nobody final : public nri::Listener {
 public:
  void before(const std::vector<policy::ledger::Event>&) override {}
  void after(const std::vector<policy::ledger::Event>&, const std::string&) override {}
  void synchronized(const std::vector<policy::ledger::Event>&) override {}
  void answered(std::string_view, std::chrono::nanoseconds) override {}
  void connected(const std::string&, bool) override {}
  void disconnected(const std::string&) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string lines;
  const log::Log log = tests::text_log(log::Level::kError, lines);
  const base::Clock clock;
  boost::asio::io_context io;
  Nobody nobody;
  nri::Translator translator(
      [](int, nri::Origin) -> base::Result<nri::Process> { return nri::Process{.is_vmm = true}; },
      log, clock);
  nri::Session session({io, translator, nobody, log, clock}, {}, false, [](const std::string&) {});
  if (session.receive(bytes.substr(0, size / 2))) (void)session.receive(bytes.substr(size / 2));
  io.run();
  return 0;
}
