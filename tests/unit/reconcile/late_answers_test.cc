// A sidecar's watch and its verbs have a connection each, so answers may arrive in another order than they were given.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <optional>
#include <utility>

#include "base/json/fields.h"
#include "operator/reconcile/shell/links/links.h"
#include "tests/unit/net/link_world.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using wire::TransferPhase;

constexpr const char* kPod = "server";  // as net::World's certificate has it

// Answers in a thread of its own.
class ScriptedSidecar {
 public:
  using Answer = std::function<void(ScriptedSidecar&, const net::Request&, net::Reply)>;

  std::optional<net::Reply> watch, status;  // not answered yet

  explicit ScriptedSidecar(Answer answer)
      : world_([this, answer = std::move(answer)](net::Request request, net::Reply reply) {
          answer(*this, request, std::move(reply));
        }) {}
  ~ScriptedSidecar() {
    world_.on_loop([this] {
      watch.reset();
      status.reset();
    });
  }
  net::TlsContext operators() { return world_.ca.context("operator"); }
  void on_loop(std::function<void()> work) { world_.on_loop(std::move(work)); }
  [[nodiscard]] std::map<Seat, std::string> pods() const { return {{{kPod}, world_.address()}}; }

 private:
  net::World world_;
};

json a_status(std::uint64_t version, TransferPhase phase) {
  wire::RankStatus status;
  status.version = version;
  status.transfer.phase = phase;
  return status;
}

std::uint64_t asked_from(const net::Request& request) { return count_at<std::uint64_t>(request.fields, "version"); }

// A sidecar of which nothing changes, and that answers every verb with ok: `heard` so many.
ScriptedSidecar::Answer obedient(std::atomic<std::uint64_t>& heard) {
  return [&heard](ScriptedSidecar& self, const net::Request& request, net::Reply reply) {
    if (request.verb == wire::kWatch && asked_from(request) != 0) {
      self.watch = std::move(reply);
    } else if (request.verb == wire::kWatch || request.verb == wire::kStatus) {
      reply.ok(a_status(1, TransferPhase::kIdle));
    } else {
      ++heard;
      reply.ok();
    }
  };
}

// The facts once they say `what`.
SidecarFacts facts_with(const Sidecars& sidecars, const std::function<bool(const SidecarFacts&)>& what) {
  for (;;) {
    const auto all = sidecars.facts();
    if (const auto it = all.find({kPod}); it != all.end() && what(it->second)) return it->second;
    ::poll(nullptr, 0, 5);
  }
}

TEST(LateAnswers, AnOlderStatusDoesNotReplaceANewerOne) {
  ScriptedSidecar theirs([](ScriptedSidecar& self, const net::Request& request, net::Reply reply) {
    if (request.verb == wire::kWatch) {
      if (asked_from(request) == 0) return reply.ok(a_status(1, TransferPhase::kRestoring));
      self.watch = std::move(reply);
      if (asked_from(request) == 2 && self.status)
        std::exchange(self.status, {})->ok(a_status(1, TransferPhase::kRestoring));
    } else if (request.verb == wire::kStatus) {
      self.status = std::move(reply);  // on its way until the operator has heard of the next change
    } else {
      reply.ok();
    }
    if (self.status && self.watch) std::exchange(self.watch, {})->ok(a_status(2, TransferPhase::kRestored));
  });
  SidecarThread thread("");
  Sidecars sidecars(thread, {.tls = theirs.operators(), .changed = {}});
  sidecars.track(theirs.pods());
  facts_with(sidecars, [](const SidecarFacts& facts) { return facts.status.has_value(); });
  migrate::Wave wave;
  wave.moves.emplace_back().target_pod = kPod;
  sidecars.call(migrate::Action::restore(wave, 0));
  const SidecarFacts facts = facts_with(sidecars, [](const SidecarFacts& f) { return !f.done.empty(); });
  EXPECT_EQ(facts.status->version, 2);
  EXPECT_EQ(facts.status->transfer.phase, TransferPhase::kRestored);
}

// Both waves would move a rank into the same free seat, and the first is over before the sidecar has answered.
TEST(LateAnswers, OfAnEarlierWaveSayNothingAboutTheNext) {
  std::atomic<unsigned> heard = 0;
  std::optional<net::Reply> first;
  ScriptedSidecar theirs([&](ScriptedSidecar& self, const net::Request& request, net::Reply reply) {
    if (request.verb == wire::kReceive && heard++ == 0)
      first = std::move(reply);
    else if (request.verb == wire::kWatch && asked_from(request) != 0)
      self.watch = std::move(reply);
    else if (request.verb == wire::kWatch || request.verb == wire::kStatus)
      reply.ok(a_status(1, TransferPhase::kIdle));
    else
      reply.ok();
  });
  SidecarThread thread("");
  Sidecars sidecars(thread, {.tls = theirs.operators(), .changed = {}});
  sidecars.track(theirs.pods());
  facts_with(sidecars, [](const SidecarFacts& facts) { return facts.status.has_value(); });
  migrate::Wave wave;
  wave.moves.emplace_back().target_pod = kPod;
  const auto ask = [&](std::uint32_t number, migrate::Action action) {
    action.token = {.wave = number, .epoch = number, .attempt = 1};
    sidecars.call(action);
  };
  sidecars.begin_wave(7);
  ask(7, migrate::Action::receive(wave, 0));
  while (heard == 0) ::poll(nullptr, 0, 5);
  sidecars.begin_wave(8);
  ask(8, migrate::Action::receive(wave, 0));
  theirs.on_loop([&] { std::exchange(first, {})->error({ErrorCode::kConflict, "it takes part in migration m6"}); });
  ask(8, migrate::Action::arm_gate({kPod}, 9));
  const SidecarFacts facts = facts_with(sidecars, [](const SidecarFacts& f) { return f.armed.has_value(); });
  EXPECT_EQ(facts.refused, "") << "that was the wave before";
  EXPECT_EQ(heard, 2u) << "the second wave asks for itself";
}

TEST(LateAnswers, ASidecarWhoseClockWentBackIsHeard) {
  ScriptedSidecar theirs([](ScriptedSidecar& self, const net::Request& request, net::Reply reply) {
    if (asked_from(request) == 5)
      self.watch = std::move(reply);  // nothing changes
    else
      reply.ok(a_status(asked_from(request) == 0 ? 1000 : 5, TransferPhase::kIdle));
  });
  SidecarThread thread("");
  Sidecars sidecars(thread, {.tls = theirs.operators(), .changed = {}});
  sidecars.track(theirs.pods());
  facts_with(sidecars, [](const SidecarFacts& facts) { return facts.status && facts.status->version == 5; });
}

// One that reports gates which nobody has armed is asked to cancel each of them, and no wave may begin for months.
TEST(Verbs, ThatWereAnsweredLongAgoAreForgottenWithoutAWave) {
  std::atomic<std::uint64_t> heard = 0;
  ScriptedSidecar theirs(obedient(heard));
  SidecarThread thread("");
  Sidecars sidecars(thread, {.tls = theirs.operators(), .changed = {}});
  sidecars.track(theirs.pods());
  facts_with(sidecars, [](const SidecarFacts& facts) { return facts.status.has_value(); });
  for (std::uint64_t gate = 1; gate <= 10; ++gate) {
    sidecars.call(migrate::Action::cancel_gate({kPod}, gate));
    facts_with(sidecars, [&](const SidecarFacts& f) { return f.has_done(migrate::ActionKind::kCancelGate, gate); });
    ::poll(nullptr, 0, 40);
  }
  EXPECT_EQ(heard, 10u);
  EXPECT_LE(sidecars.remembered_verbs(), 5u) << "of the last moment";
}

// A job has thousands of waves, each with verbs of its own.
TEST(Verbs, OfEarlierWavesAreForgotten) {
  std::atomic<std::uint64_t> heard = 0;
  ScriptedSidecar theirs(obedient(heard));
  SidecarThread thread("");
  Sidecars sidecars(thread, {.tls = theirs.operators(), .changed = {}});
  sidecars.track(theirs.pods());
  facts_with(sidecars, [](const SidecarFacts& facts) { return facts.status.has_value(); });
  constexpr std::uint32_t kWaves = 200;
  for (std::uint32_t wave = 1; wave <= kWaves; ++wave) {
    sidecars.begin_wave(wave);
    sidecars.call(migrate::Action::arm_gate({kPod}, wave));
    facts_with(sidecars, [&](const SidecarFacts& facts) { return facts.armed && facts.armed->superstep == wave; });
  }
  EXPECT_EQ(heard, kWaves);
  EXPECT_LE(sidecars.remembered_verbs(), 2u) << "of the last wave, or under way when it began";
}

}  // namespace
}  // namespace bsp::reconcile
