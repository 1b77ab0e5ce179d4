#include "affinity/api/requests.hpp"

#include <boost/json/value.hpp>

#include "affinity/words/json.hpp"
#include "affinity/words/specs.hpp"
#include "vmm/qmp/socket_path.hpp"

namespace ka::api {

base::Result<policy::Event> read_sandbox(const std::string& id, std::string_view body) {
  const auto document = words::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  words::Complaint complaint;
  words::Fields fields(*document, "", complaint);
  policy::PodSeen pod{.id = id};
  words::read_pod_fields(fields, pod);
  fields.finish();
  if (!complaint.empty()) return unexpected(complaint.error());
  if (!pod.qmp_socket.empty()) {
    if (auto good = qmp::check_socket(pod.qmp_socket); !good) return unexpected(good.error());
  }
  return policy::Event{policy::Source::kApi, std::move(pod)};
}

base::Result<policy::Event> read_container(const std::string& sandbox, const std::string& id,
                                           std::string_view body) {
  const auto document = words::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  words::Complaint complaint;
  words::Fields fields(*document, "", complaint);
  policy::ContainerSeen seen{.sandbox = sandbox, .container = {.id = id}, .exclusive = {}};
  words::read_spec_fields(fields, seen.container);
  bool exclusive = false;
  if (fields.read("exclusive", exclusive)) seen.exclusive = exclusive;
  fields.finish();
  if (!complaint.empty()) return unexpected(complaint.error());
  return policy::Event{policy::Source::kApi, std::move(seen)};
}

}  // namespace ka::api
