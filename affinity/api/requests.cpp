#include "affinity/api/requests.hpp"

#include <algorithm>
#include <boost/json/value.hpp>

#include "affinity/words/json.hpp"
#include "affinity/words/specs.hpp"
#include "guest-agent/host/address.hpp"
#include "vmm/qmp/socket_path.hpp"

namespace ka::api {
namespace {

/// Text from outside ends up in terminals and in logs, line by line.
void check_text(const words::Fields& fields, std::string_view key, std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
  if (std::ranges::any_of(text, is_control)) fields.complain(key, "has control characters");
}

}  // namespace

base::Result<policy::Event> read_sandbox(const std::string& id, std::string_view body) {
  const auto document = words::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  words::Complaint complaint;
  words::Fields fields(*document, "", complaint);
  policy::PodSeen pod{.id = id};
  words::read_pod_fields(fields, pod);
  check_text(fields, "pod_uid", pod.pod_uid);
  check_text(fields, "pod_name", pod.pod_name);
  check_text(fields, "handler", pod.handler);
  check_text(fields, "cgroup", pod.cgroup);
  check_text(fields, "qmp_socket", pod.qmp_socket);
  check_text(fields, "agent", pod.agent);
  check_text(fields, "domain", pod.domain);
  fields.finish();
  if (!complaint.empty()) return unexpected(complaint.error());
  if (!pod.qmp_socket.empty()) {
    if (auto good = qmp::check_socket(pod.qmp_socket); !good) return unexpected(good.error());
  }
  if (!pod.agent.empty()) {
    if (auto good = guest::parse_address(pod.agent); !good) return unexpected(good.error());
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
  check_text(fields, "name", seen.container.name);
  bool exclusive = false;
  if (fields.read("exclusive", exclusive)) seen.exclusive = exclusive;
  fields.finish();
  if (!complaint.empty()) return unexpected(complaint.error());
  return policy::Event{policy::Source::kApi, std::move(seen)};
}

}  // namespace ka::api
