// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/demonstration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>

namespace ka::cli::selftest {
namespace {

namespace json = boost::json;
using Samples = std::vector<Sample>;
using Milliseconds = std::chrono::duration<double, std::milli>;

const Sample* find(const Samples& samples, int tid) {
  const auto found =
      std::ranges::find_if(samples, [tid](const Sample& one) { return one.thread.tid == tid; });
  return found == samples.end() ? nullptr : &*found;
}

std::vector<std::pair<const Sample*, const Sample*>> pairs(const Demonstration& shown) {
  std::vector<std::pair<const Sample*, const Sample*>> found;
  for (const Sample& after : shown.after) {
    const Sample* before = find(shown.before, after.thread.tid);
    if (before != nullptr) found.emplace_back(before, &after);
  }
  return found;
}

json::object to_json(const Sample& sample) {
  return {{"cpus", policy::format_list(sample.thread.cpus)},
          {"ran_ms", Milliseconds(sample.time.ran).count()},
          {"waited_ms", Milliseconds(sample.time.waited).count()}};
}

std::string columns(const Sample& sample) {
  return fmt::format("  {:<16} {:>9.1f} {:>9.1f}", policy::format_list(sample.thread.cpus),
                     Milliseconds(sample.time.ran).count(),
                     Milliseconds(sample.time.waited).count());
}

}  // namespace

Samples elapsed(const Samples& begin, const Samples& end) {
  Samples periods;
  for (const Sample& last : end) {
    const Sample* first = find(begin, last.thread.tid);
    if (first == nullptr) continue;
    periods.push_back({last.thread,
                       {.ran = last.time.ran - first->time.ran,
                        .waited = last.time.waited - first->time.waited}});
  }
  return periods;
}

json::object to_json(const Demonstration& shown) {
  json::array threads;
  for (const auto& [before, after] : pairs(shown)) {
    threads.push_back({{"tid", after->thread.tid},
                       {"part", after->thread.part},
                       {"before", to_json(*before)},
                       {"after", to_json(*after)}});
  }
  return {{"seconds", shown.period.count()},
          {"busy_cpus", policy::format_list(shown.busy)},
          {"threads", std::move(threads)}};
}

std::string describe(const Demonstration& shown) {
  std::string text = fmt::format(
      "\nThreads of the VM in {} s while CPUs {} are busy: released, and placed by the daemon.\n"
      "Times in ms.\n\n"
      "  {:<10} {:>8}  {:<16} {:>9} {:>9}  {:<16} {:>9} {:>9}\n",
      shown.period.count(), policy::format_list(shown.busy), "thread", "tid", "released", "ran",
      "waited", "placed", "ran", "waited");
  for (const auto& [before, after] : pairs(shown)) {
    text += fmt::format("  {:<10} {:>8}{}{}\n", after->thread.part, after->thread.tid,
                        columns(*before), columns(*after));
  }
  return text;
}

}  // namespace ka::cli::selftest
