// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/start_gate.hpp"

#include <string>

#include "tests/catch.hpp"

using ka::policy::ledger::is_runtime_id;
using ka::policy::ledger::LostState;
using ka::policy::ledger::Source;
using ka::policy::ledger::StartGate;
using Phase = StartGate::Phase;

namespace {

const std::string kPod(64, '1');
const LostState kFile{"/state/" + kPod + ".json", kPod, "it is damaged", true};
const LostState kByHand{"/state/vm1.json", "vm1", "it is damaged", true};
const LostState kFolder{"/state", "", "permission denied", false};

}  // namespace

TEST_CASE("with no source to wait for, everything may be written") {
  StartGate gate;
  CHECK(gate.may_widen());
  gate.set_lost({});
  CHECK(gate.may_widen());
}

TEST_CASE("each awaited source must report") {
  StartGate gate;
  gate.expect(Source::kNri);
  gate.expect(Source::kKubelet);
  CHECK(gate.phase() == Phase::kWaiting);
  gate.synced(Source::kKubelet);
  gate.synced(Source::kPersist);
  CHECK(gate.phase() == Phase::kWaiting);
  gate.synced(Source::kNri);
  CHECK(gate.may_widen());
}

TEST_CASE("a silent source is waited for until the limit, and named") {
  StartGate gate;
  gate.expect(Source::kNri);
  gate.expect(Source::kKubelet);
  gate.synced(Source::kKubelet);
  gate.expire();
  CHECK(gate.may_widen());
  CHECK(gate.silent() == std::set{Source::kNri});
}

TEST_CASE("lost state does not expire") {
  StartGate gate;
  gate.expect(Source::kNri);
  gate.set_lost({kFile});
  CHECK(gate.phase() == Phase::kWaiting);
  gate.expire();
  CHECK(gate.phase() == Phase::kBlind);
  gate.synced(Source::kNri);
  CHECK(gate.may_widen());
}

TEST_CASE("a source that does not know every pod does not replace lost state") {
  StartGate gate;
  gate.expect(Source::kPersist);
  gate.set_lost({kFile});
  gate.synced(Source::kPersist);
  CHECK(gate.phase() == Phase::kBlind);
  SECTION("one that knows every pod does") { gate.synced(Source::kKubelet); }
  SECTION("nor does one container of another pod") {
    gate.pod_reported("s2");
    CHECK(gate.phase() == Phase::kBlind);
    gate.pod_reported(kPod);
  }
  SECTION("a later successful read does") { gate.set_lost({}); }
  SECTION("an operator's reconcile does") { gate.dismiss_lost(); }
  CHECK(gate.may_widen());
}

TEST_CASE("no source of the node's pods replaces lost state of what may be none of them") {
  const LostState lost = GENERATE(kByHand, kFolder);
  StartGate gate;
  gate.expect(Source::kNri);
  gate.expect(Source::kKubelet);
  gate.set_lost({kFile, lost});
  gate.synced(Source::kNri);
  gate.synced(Source::kKubelet);
  CHECK(gate.phase() == Phase::kBlind);
  SECTION("its report does, with theirs") { gate.set_lost({kFile}); }
  SECTION("an operator's reconcile does") { gate.dismiss_lost(); }
  CHECK(gate.may_widen());
}

TEST_CASE("a runtime's ids are 64 hexadecimal digits") {
  CHECK(is_runtime_id("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
  for (const std::string& other : {std::string(), std::string("vm1"), std::string(63, 'a'),
                                   std::string(65, 'a'), std::string(63, 'a') + 'g'}) {
    CHECK_FALSE(is_runtime_id(other));
  }
}

TEST_CASE("a reported pod is not counted as lost again") {
  StartGate gate;
  gate.set_lost({kFile, kFolder});
  gate.pod_reported(kPod);
  CHECK(gate.phase() == Phase::kBlind);
  gate.set_lost({kFile});
  CHECK(gate.may_widen());
}

TEST_CASE("an operator's reconcile does not replace the sources") {
  StartGate gate;
  gate.expect(Source::kNri);
  gate.set_lost({kFolder});
  gate.dismiss_lost();
  CHECK(gate.phase() == Phase::kWaiting);
  CHECK(gate.lost().empty());
  gate.set_lost({kFolder});  // what is damaged is found again until the gate opens
  CHECK(gate.lost().empty());
  gate.expire();
  CHECK(gate.may_widen());
}

TEST_CASE("an open gate stays open") {
  StartGate gate;
  gate.expect(Source::kNri);
  gate.synced(Source::kNri);
  gate.set_lost({kFile});
  gate.expect(Source::kLibvirt);
  CHECK(gate.may_widen());
}
