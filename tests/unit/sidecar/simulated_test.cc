// The sidecar of the simulated cluster against the real one: both are asked the same, in the same order, and must answer
// alike and show the same status. This test plays the program (through the ring) and bsp-init (on the control socket).
#include <gtest/gtest.h>
#include <unistd.h>

#include <format>

#include "crds/reflect.h"
#include "sidecar/control/messages.h"
#include "sidecar/ring/ring_access.h"
#include "tests/simulated_cluster/pod.h"
#include "tests/unit/sidecar/real_sidecar.h"

namespace bsp {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using sidecar::kPod;
using sidecar::RealSidecar;
using simulated::Process;

wire::EpochPlan plan(std::uint64_t epoch, const std::string& pod = kPod) {
  return {.epoch = epoch,
          .pmix_namespace = std::format("uid-e{}", epoch),
          .sets = {"slow"},
          .members = {{.rank = 0, .pod = pod, .pod_uid = "u", .address = "127.0.0.1:1", .set = 0}}};
}

class Simulated : public testing::Test {
 protected:
  Simulated() {
    pod_.name = kPod;
    pod_.status.pod = kPod;
  }

  // Asks both and compares answers and, unless the process is now to change, statuses. "ok", or the error's code.
  std::string ask(const char* verb, const json& fields) {
    const auto real = real_.ask(verb, fields);
    const auto simulated = simulated::answer(pod_, verb, fields);
    const auto what = [](const Result<json>& answer) {
      return answer
                 ? std::string("ok")
                 : std::format("{}{}", to_string(answer.error().code), answer.error().retryable ? ", retryable" : "");
    };
    EXPECT_EQ(what(real), what(simulated.result))
        << verb << ' ' << fields.dump() << (real ? "" : ": " + real.error().message);
    if (real && simulated.result) {
      for (const auto& [name, value] : simulated.result->items())
        EXPECT_EQ((*real)[name], value) << verb << ' ' << name;
    }
    if (simulated.effect == simulated::Effect::kNone) compare(verb);
    return what(real);
  }
  void compare(const char* after) {
    const auto seen = [](const wire::RankStatus& s) {
      return json{{"phase", to_string(s.phase)},
                  {"init", s.init_connected},
                  {"epoch", s.epoch},
                  {"prepared", s.prepared_epoch},
                  {"admitted", s.admitted_epoch},
                  {"wave", s.wave},
                  {"completed", s.completed},
                  {"gate", s.gate_superstep},
                  {"committed", s.gate_committed},
                  {"migration", s.transfer.migration},
                  {"transfer", to_string(s.transfer.phase)}};
    };
    EXPECT_EQ(seen(real_.status()), seen(pod_.status)) << "after " << after;
  }

  // --- The program, in both ---
  void start_program() {
    real_.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = 7, .state = control::ProgramState::kRunning});
    real_.wait_until([](const auto& s) { return s.init_connected; });
    pod_.process = Process::kStarting;
    pod_.status.init_connected = true;
    pod_.status.phase = wire::RankPhase::kStarting;
    compare("the start");
  }
  void run_in(std::uint64_t epoch) {
    real_.say(control::Running{.pid = 7});
    BSP_RING_STORE(real_.ring().epoch, epoch);
    BSP_RING_STORE(real_.ring().opened_ns, std::uint64_t{1});
    BSP_RING_STORE(real_.ring().state, static_cast<std::uint32_t>(BSP_RANK_RUNNING));
    real_.wait_until([](const auto& s) { return s.phase == wire::RankPhase::kRunning; });
    pod_.process = Process::kRunning;
    pod_.status.epoch = epoch;
    pod_.status.phase = wire::RankPhase::kRunning;
    compare("the opening");
  }
  void complete(std::uint64_t superstep) {
    BSP_RING_STORE_SEQ(real_.ring().completed, superstep);
    pod_.status.completed = superstep;
    compare("a superstep");
  }
  void drop_gate() {
    BSP_RING_STORE_SEQ(real_.ring().gate_dropped, pod_.status.gate_superstep);
    pod_.gate_dropped = pod_.status.gate_superstep;
    clear_gate(pod_);
    compare("the drop");
  }
  void stop() {
    BSP_RING_STORE(real_.ring().state, static_cast<std::uint32_t>(BSP_RANK_CLOSING));
    real_.say(control::Stopped{.pid = 7});
    real_.wait_until([](const auto& s) { return s.phase == wire::RankPhase::kStopped; });
    pod_.process = Process::kStopped;
    pod_.status.phase = wire::RankPhase::kStopped;
    compare("the stop");
  }

  RealSidecar real_;
  simulated::Pod pod_;
};

TEST_F(Simulated, AnswersLikeTheSidecarOfARankThroughItsEpochs) {
  start_program();
  EXPECT_EQ(ask("openEpoch", {{"epoch", 1}}), "NotFound");
  EXPECT_EQ(ask("prepareEpoch", json(plan(1))), "ok");
  EXPECT_EQ(ask("prepareEpoch", json(plan(1))), "ok");
  EXPECT_EQ(ask("openEpoch", {{"epoch", 1}}), "ok");
  run_in(1);
  EXPECT_EQ(ask("openEpoch", {{"epoch", 1}}), "ok");
  EXPECT_EQ(ask("prepareEpoch", json(plan(1))), "ok");
  EXPECT_EQ(ask("prepareEpoch", json(plan(1, "another"))), "Conflict");
  complete(5);
  ask("commitGate", {{"superstep", 8}});
  complete(8);
  stop();
  EXPECT_EQ(ask("prepareEpoch", json(plan(2))), "ok");
  EXPECT_EQ(ask("prepareEpoch", json(plan(3))), "ok");
  EXPECT_EQ(ask("openEpoch", {{"epoch", 2}}), "Conflict") << "a later one was prepared since";
  EXPECT_EQ(ask("openEpoch", {{"epoch", 3}}), "ok");
  run_in(3);
  EXPECT_EQ(ask("openEpoch", {{"epoch", 1}}), "Conflict");
  EXPECT_EQ(ask("openEpoch", {{"epoch", 2}}), "Conflict");
}

TEST_F(Simulated, AnswersLikeTheSidecarOfARankAtItsGates) {
  start_program();
  ask("prepareEpoch", json(plan(1)));
  ask("openEpoch", {{"epoch", 1}});
  run_in(1);
  complete(5);
  EXPECT_EQ(ask("armGate", {{"superstep", 0}}), "Invalid");
  EXPECT_EQ(ask("armGate", {{"superstep", 8}}), "ok");
  EXPECT_EQ(ask("armGate", {{"superstep", 5}}), "ok") << "late, and armed all the same";
  EXPECT_EQ(ask("cancelGate", {{"superstep", 8}}), "ok") << "of another gate";
  EXPECT_EQ(ask("cancelGate", {{"superstep", 5}}), "ok");
  EXPECT_EQ(ask("commitGate", {{"superstep", 4}}), "Conflict") << "passed, and never armed";
  EXPECT_EQ(ask("commitGate", {{"superstep", 9}}), "ok") << "the arm was lost";
  EXPECT_EQ(ask("commitGate", {{"superstep", 9}}), "ok");
  EXPECT_EQ(ask("armGate", {{"superstep", 9}}), "Conflict");
  EXPECT_EQ(ask("commitGate", {{"superstep", 10}}), "Conflict");
  EXPECT_EQ(ask("cancelGate", {{"superstep", 9}}), "ok");
  EXPECT_EQ(ask("commitGate", {{"superstep", 9}}), "Conflict") << "it is being dropped";
  EXPECT_EQ(ask("armGate", {{"superstep", 12}}), "Conflict");
  complete(9);
  drop_gate();
  EXPECT_EQ(ask("armGate", {{"superstep", 12}}), "ok");
  EXPECT_EQ(ask("commitGate", {{"superstep", 12}}), "ok");
  EXPECT_EQ(ask("send", {{"migration", "m"}, {"to_pod", "t"}, {"to_address", "127.0.0.1:1"}}), "Conflict");
  complete(12);
  stop();
  EXPECT_EQ(ask("commitGate", {{"superstep", 12}}), "ok");
}

json of(const wire::Token& token, json fields) {
  fields[wire::kToken] = reflect::write(token);
  return fields;
}

TEST_F(Simulated, RefusesVerbsThatWereOvertakenLikeTheSidecar) {
  start_program();
  EXPECT_EQ(ask("prepareEpoch", of({0, 1, 0}, json(plan(1)))), "ok");
  EXPECT_EQ(ask("openEpoch", of({0, 1, 0}, {{"epoch", 1}})), "ok");
  run_in(1);
  complete(5);
  EXPECT_EQ(ask("armGate", of({1, 2, 1}, {{"superstep", 8}})), "ok");
  EXPECT_EQ(ask("armGate", of({1, 2, 2}, {{"superstep", 20}})), "ok");
  EXPECT_EQ(ask("armGate", of({1, 2, 1}, {{"superstep", 8}})), "Conflict") << "the rank would wait for ever";
  EXPECT_EQ(ask("cancelGate", of({1, 2, 1}, {{"superstep", 20}})), "Conflict");
  EXPECT_EQ(ask("prepareEpoch", of({1, 2, 1}, json(plan(2)))), "ok") << "attempts are of gates";
  EXPECT_EQ(ask("armGate", of({1, 2, 2}, {{"superstep", 20}})), "ok") << "again";
  EXPECT_EQ(ask("cancelGate", of({1, 3, 2}, {{"superstep", 20}})), "ok");
  EXPECT_EQ(ask("commitGate", of({1, 3, 2}, {{"superstep", 20}})), "Conflict") << "its gate is over";
  EXPECT_EQ(ask("armGate", of({1, 3, 2}, {{"superstep", 20}})), "Conflict");
  for (const auto& [verb, fields] : std::vector<std::pair<const char*, json>>{
           {"prepareEpoch", json(plan(2))},
           {"openEpoch", {{"epoch", 1}}},
           {"commitGate", {{"superstep", 30}}},
           {"receive", {{"migration", "m"}, {"from_pod", "p"}}},
           {"send", {{"migration", "m"}, {"to_pod", "t"}, {"to_address", "127.0.0.1:1"}}},
           {"restore", {{"migration", "m"}}},
           {"discard", {{"migration", "m"}}}})
    EXPECT_EQ(ask(verb, of({1, 2, 9}, fields)), "Conflict") << verb;
  EXPECT_EQ(ask("armGate", of({2, 4, 1}, {{"superstep", 30}})), "ok") << "of the next wave";
  EXPECT_EQ(ask("cancelGate", of({2, 4, 1}, {{"superstep", 30}})), "ok");
  EXPECT_EQ(ask("armGate", {{"superstep", 40}}), "ok") << "of an operator that knows no tokens";
  EXPECT_EQ(ask("cancelGate", {{"superstep", 40}}), "ok");
}

TEST_F(Simulated, AnswersLikeTheSidecarOfATarget) {
  real_.connect_init({.mode = control::Mode::kRestore,
                      .uid = ::getuid(),
                      .gid = ::getgid(),
                      .state = control::ProgramState::kWaiting});
  real_.wait_until([](const auto& s) { return s.init_connected; });
  pod_.target = true;
  pod_.status.init_connected = true;
  compare("the start");
  EXPECT_EQ(ask("restore", {{"migration", "m1"}}), "Conflict");
  EXPECT_EQ(ask("discard", {{"migration", "m1"}}), "ok");
  EXPECT_EQ(ask("receive", {{"migration", "m1"}, {"from_pod", "source"}, {"restore", true}}), "ok");
  EXPECT_EQ(ask("receive", {{"migration", "m1"}, {"from_pod", "source"}, {"restore", true}}), "ok");
  EXPECT_EQ(ask("receive", {{"migration", "m1"}, {"from_pod", "other"}}), "Conflict");
  EXPECT_EQ(ask("receive", {{"migration", "m2"}, {"from_pod", "source"}}), "Conflict");
  EXPECT_EQ(ask("restore", {{"migration", "m1"}}), "Conflict");
  EXPECT_EQ(ask("send", {{"migration", "m1"}, {"to_pod", "t"}, {"to_address", "127.0.0.1:1"}}), "Conflict");
  EXPECT_EQ(ask("discard", {{"migration", "m2"}}), "ok");
  EXPECT_EQ(ask("prepareEpoch", json(plan(4, "another"))), "ok");
  EXPECT_EQ(ask("openEpoch", {{"epoch", 4}}), "Refused");
  EXPECT_EQ(ask("discard", {{"migration", "m1"}}), "ok");
  EXPECT_EQ(ask("receive", {{"migration", "m2"}, {"from_pod", "source"}}), "ok");
  EXPECT_EQ(ask("noSuchVerb", json::object()), "Invalid");
}

// The operator gives the source up by what the copy says (operator/migrate/verbs.cc), so nobody else may say it.
TEST_F(Simulated, ACopyIsInAnEpochOnlyWhenItSaysSoItself) {
  real_.connect_init({.mode = control::Mode::kRestore,
                      .uid = ::getuid(),
                      .gid = ::getgid(),
                      .pid = 7,
                      .state = control::ProgramState::kRestored});
  real_.wait_until([](const auto& s) { return s.init_connected; });
  pod_.target = true;
  pod_.process = Process::kRestored;
  pod_.status.init_connected = true;
  pod_.status.phase = wire::RankPhase::kStopped;
  compare("the restore");
  EXPECT_EQ(ask("prepareEpoch", json(plan(4))), "ok");
  EXPECT_EQ(ask("openEpoch", {{"epoch", 4}}), "ok");
  real_.say(control::Running{.pid = 7});
  real_.wait_until([](const auto& s) { return s.phase == wire::RankPhase::kOpening; });
  EXPECT_EQ(real_.status().epoch, 0u) << "SIGCONT is no instruction";
  EXPECT_EQ(real_.status().admitted_epoch, 4u);
  BSP_RING_STORE(real_.ring().state, static_cast<std::uint32_t>(BSP_RANK_OPENING));
  BSP_RING_STORE(real_.ring().epoch, std::uint64_t{4});
  real_.wait_until([](const auto& s) { return s.epoch == 4; });
  EXPECT_EQ(real_.status().phase, wire::RankPhase::kOpening);
}

// spec.cpu: Common.
TEST_F(Simulated, AProgramThatWaitsForItsCpuFeaturesIsStartedWithThoseOfTheFirstPlan) {
  real_.connect_init({.uid = ::getuid(), .gid = ::getgid(), .state = control::ProgramState::kWaiting});
  real_.wait_until([](const auto& s) { return s.init_connected; });
  EXPECT_EQ(real_.status().phase, wire::RankPhase::kWaiting);
  EXPECT_EQ(real_.status().cpu_features, real_.machine().bits());
  EXPECT_EQ(real_.status().program_features, 0u);
  wire::EpochPlan first = plan(1);
  first.cpu_level = 12345;
  ASSERT_TRUE(real_.ask("prepareEpoch", json(first)));
  EXPECT_EQ(real_.hear<control::Start>().features, 12345u);
  real_.say(control::Hello{
      .uid = ::getuid(), .gid = ::getgid(), .pid = 7, .state = control::ProgramState::kRunning, .features = 12345});
  real_.wait_until([](const auto& s) { return s.program_features == 12345; });
}

TEST_F(Simulated, AnswersLikeTheSidecarOfAProgramThatHasEnded) {
  start_program();
  real_.say(control::Exited{.code = 3});
  real_.wait_until([](const auto& s) { return s.phase == wire::RankPhase::kExited; });
  pod_.process = Process::kEnded;
  pod_.status.phase = wire::RankPhase::kExited;
  compare("the end");
  EXPECT_EQ(ask("armGate", {{"superstep", 8}}), "Refused");
  EXPECT_EQ(ask("cancelGate", {{"superstep", 8}}), "ok");
  EXPECT_EQ(ask("send", {{"migration", "m"}, {"to_pod", "t"}, {"to_address", "127.0.0.1:1"}}), "Conflict");
}

}  // namespace
}  // namespace bsp
