// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/report/report.hpp"

#include <unistd.h>

#include <array>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/report/page.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ka::cli {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this node";
}

base::Result<ReportData> fetch(const Daemon& daemon) {
  ReportData data{.host = host_name(), .time = base::Clock().wall()};
  const std::pair<const char*, boost::json::object*> documents[] = {{"/v1/node", &data.node},
                                                                    {"/v1/sandboxes", &data.list},
                                                                    {"/v1/drifts", &data.drifts},
                                                                    {"/v1/waits", &data.waits}};
  for (const auto& [target, document] : documents) {
    auto response = daemon.get(target);
    if (!response) return unexpected(std::move(response.error()));
    *document = std::move(*response);
  }
  auto verify = daemon.post("/v1/verify");
  if (!verify) return unexpected(std::move(verify.error()));
  data.verify = std::move(*verify);
  return data;
}

}  // namespace

Exit run(const ReportOptions& options, Output& output) {
  const auto data = fetch(Daemon(options.socket));
  if (!data) return output.fail(data.error());
  const std::string page = draw_page(*data);
  if (options.html == "-") {
    output.print(page);
    return Exit::kDone;
  }
  if (const auto done = write_output(options.html, page); !done) return output.fail(done.error());
  const std::string verdict = text_of(data->verify, "verdict");
  output.show({{"file", options.html}, {"verdict", verdict}}, [&] {
    return options.html + ": a report of " + data->host + ", verdict " + verdict + '\n';
  });
  return Exit::kDone;
}

}  // namespace ka::cli
