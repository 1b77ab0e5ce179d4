// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/rdt_service.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <set>
#include <utility>

#include "affinity/documents/rdt.hpp"
#include "affinity/documents/thread.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;
using base::Fields;
using base::InputError;

constexpr std::size_t kMostProblem = 128;  ///< of a thread, in bytes

/// Reads the groups of one request, in which classes and threads are unique.
class OrderReader {
 public:
  explicit OrderReader(InputError& wrong) : wrong_(wrong) {}

  void read_group(const json::value& value, const std::string& path) {
    if (groups_.size() == kMostRdtGroups) return wrong_.add(path, "more than 64 groups");
    Fields fields(value, path, wrong_);
    fields.require({"class", "schemata", "tasks"});
    RdtGroup& group = groups_.emplace_back();
    fields.read("class", group.name);
    if (!base::is_id(group.name)) fields.reject("class", "is not the name of a class");
    if (!names_.insert(group.name).second) fields.reject("class", "is there twice");
    if (const json::value* shares = fields.find("schemata")) {
      group.shares = read_shares_of(*shares, fields.path("schemata"));
    }
    fields.each("tasks", [&](const json::value& task, const std::string& at) {
      read_task(task, at, group);
    });
    fields.finish();
  }

  std::vector<RdtGroup> release() { return std::move(groups_); }

 private:
  policy::RdtShares read_shares_of(const json::value& value, const std::string& path) {
    Fields fields(value, path, wrong_);
    policy::RdtShares shares = documents::read_shares(fields);
    if (shares.empty()) wrong_.add(path, "has none of l3, l2, mba");
    fields.finish();
    return shares;
  }

  void read_task(const json::value& value, const std::string& path, RdtGroup& group) {
    if (tasks_.size() == kMostRdtTasks) return wrong_.add(path, "more than 4096 threads");
    Fields fields(value, path, wrong_);
    const policy::ThreadKey thread = documents::read_thread(fields);
    fields.finish();
    if (!tasks_.insert(thread.tid).second) return wrong_.add(path, "is there twice");
    group.tasks.push_back(thread);
  }

  InputError& wrong_;
  std::vector<RdtGroup> groups_;
  std::set<std::string> names_;
  std::set<int> tasks_;
};

json::object to_json(const RdtGroupState& group) {
  json::array tasks;
  for (const RdtTaskState& task : group.tasks) {
    tasks.push_back(
        {{"tid", task.thread.tid}, {"problem", base::printable(task.problem, kMostProblem)}});
  }
  return {{"class", group.name},
          {"schemata", group.schemata},
          {"problem", base::printable(group.problem)},
          {"tasks", std::move(tasks)}};
}

}  // namespace

base::Result<std::vector<RdtGroup>> read_groups(std::string_view body) {
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  InputError wrong;
  OrderReader reader(wrong);
  Fields fields(*document, "", wrong);
  fields.require({"groups"});
  fields.each("groups", [&](const json::value& value, const std::string& path) {
    reader.read_group(value, path);
  });
  fields.finish();
  if (!wrong.empty()) return unexpected(wrong.error());
  return reader.release();
}

std::string to_text(const RdtState& state) {
  json::array groups;
  for (const RdtGroupState& group : state.groups) groups.push_back(to_json(group));
  return json::serialize(json::object{{"groups", std::move(groups)}, {"problem", state.problem}}) +
         '\n';
}

Verb rdt_verb(RdtKeeper& keeper) {
  return {.get =
              [&keeper] {
                keeper.check();
                return to_text(keeper.state());
              },
          .post = [&keeper](const std::string& body) -> base::Result<std::string> {
            auto groups = read_groups(body);
            if (!groups) return unexpected(groups.error());
            keeper.keep(*std::move(groups));
            return to_text(keeper.state());
          }};
}

}  // namespace ka::helper
