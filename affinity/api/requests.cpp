#include "affinity/api/requests.hpp"

#include <boost/json/value.hpp>

#include "affinity/words/json.hpp"
#include "vmm/qmp/socket_path.hpp"

namespace ka::api {

base::Result<policy::Event> read_sandbox(const std::string& id, std::string_view body) {
  const auto document = words::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  words::Complaint complaint;
  words::Fields fields(*document, "", complaint);
  policy::PodSeen pod{.id = id};
  int vmm_pid = 0;
  if (fields.read("vmm_pid", vmm_pid)) pod.vmm_pid = vmm_pid;
  fields.read("pod_uid", pod.pod_uid);
  fields.read("pod_name", pod.pod_name);
  fields.read("handler", pod.handler);
  fields.read("cgroup", pod.cgroup);
  fields.read("qmp_socket", pod.qmp_socket);
  fields.read("agent", pod.agent);
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
  fields.read("name", seen.container.name);
  fields.read("cpus", seen.container.cpus);
  fields.read("mems", seen.container.mems);
  fields.read("quota", seen.container.quota);
  fields.read("period", seen.container.period);
  bool exclusive = false;
  if (fields.read("exclusive", exclusive)) seen.exclusive = exclusive;
  fields.finish();
  if (!complaint.empty()) return unexpected(complaint.error());
  return policy::Event{policy::Source::kApi, std::move(seen)};
}

}  // namespace ka::api
