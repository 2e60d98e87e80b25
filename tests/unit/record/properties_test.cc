// What holds for every record: it comes back as it was, and what was decided is decided again.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "operator/decide/make_plan.h"
#include "operator/decide/model/strategy.h"
#include "operator/record/line.h"
#include "operator/record/replay.h"
#include "tests/unit/record/random_call.h"

namespace bsp::record {
namespace {

void expect(bool holds) { EXPECT_TRUE(holds); }

// RapidCheck prints its seed where a property does not hold; what is random about a run follows from the number drawn
// here.
struct Drawn {
  std::mt19937_64 random;
  decide::Shape shape;
  Drawn()
      : random(*rc::gen::arbitrary<std::uint64_t>()),
        shape{.ranks = from(1, 12), .processors = from(1, 9), .sets = from(1, 5)} {}
  // All sizes are as likely from the first test on; what fails is still made smaller.
  static std::uint32_t from(std::uint32_t least, std::uint32_t most) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::uint32_t>(least, most + 1));
  }
};

decide::Heuristic any_heuristic() {
  const auto all = decide::strategies();
  return all[*rc::gen::inRange<std::size_t>(0, all.size())].heuristic;
}

class OfEachHeuristic : public ::testing::TestWithParam<decide::Heuristic> {};
INSTANTIATE_TEST_SUITE_P(Record, OfEachHeuristic,
                         ::testing::Values(decide::Heuristic::kTop, decide::Heuristic::kPercentage,
                                           decide::Heuristic::kAutoMig, decide::Heuristic::kMigCube,
                                           decide::Heuristic::kMigHull, decide::Heuristic::kBottleneck,
                                           decide::Heuristic::kAuto),
                         [](const auto& h) { return std::string(decide::strategy_for(h.param).name); });

TEST_P(OfEachHeuristic, RecordedAndReplayedIsTheSamePlan) {
  int moving = 0;
  expect(rc::check([&] {
    Drawn drawn;
    RandomRun run(drawn.random, drawn.shape, GetParam());
    for (int n = 0; n < 3; ++n) {
      const Call call = run.next();
      const Result<Call> read = from_line(to_line(call));
      if (!read) RC_FAIL(read.error().message);
      RC_ASSERT(difference(call.plan, read->plan) == "");
      const Result<decide::Plan> again = replay(*read, read->params);
      RC_ASSERT(again);
      RC_ASSERT(difference(call.plan, *again) == "");
      moving += !call.plan.moves.empty();
    }
  }));
  EXPECT_GT(moving, 9) << "of 300, or plans were the same because they are empty";
}

TEST(Record, ComesBackAsItWas) {
  expect(rc::check([] {
    Drawn drawn;
    RandomRun run(drawn.random, drawn.shape, any_heuristic());
    const Call call = run.next();
    const std::string line = to_line(call);
    RC_ASSERT(line.find('\n') == std::string::npos);
    const Result<Call> read = from_line(line);
    if (!read) RC_FAIL(read.error().message);
    RC_ASSERT(to_line(*read) == line);
    RC_ASSERT(read->job == call.job && read->name_space == call.name_space && read->uid == call.uid);
    RC_ASSERT(read->attempt == call.attempt && read->time == call.time);
    RC_ASSERT(read->state == call.state);
    const decide::Platform &a = read->snapshot.platform, &b = call.snapshot.platform;
    RC_ASSERT(a.T == b.T && a.Mig == b.Mig && a.T_origin == b.T_origin && a.Mig_origin == b.Mig_origin);
    RC_ASSERT(a.capacity == b.capacity);
    RC_ASSERT(a.processors.size() == b.processors.size() && a.sets.size() == b.sets.size());
    for (std::size_t j = 0; j < a.sets.size(); ++j)
      RC_ASSERT(a.sets[j].name == b.sets[j].name && a.sets[j].cordoned == b.sets[j].cordoned);
    for (std::size_t p = 0; p < a.processors.size(); ++p) {
      const decide::Processor &x = a.processors[p], &y = b.processors[p];
      RC_ASSERT(x.name == y.name && x.set == y.set && x.cpu == y.cpu && x.cpu_origin == y.cpu_origin &&
                x.cpu_error == y.cpu_error && x.load == y.load);
      RC_ASSERT(x.slots == y.slots && x.taken == y.taken && x.cordoned == y.cordoned && x.may_return == y.may_return);
    }
    RC_ASSERT(read->snapshot.ranks.size() == call.snapshot.ranks.size());
    for (std::size_t i = 0; i < call.snapshot.ranks.size(); ++i) {
      const decide::Rank &x = read->snapshot.ranks[i], &y = call.snapshot.ranks[i];
      RC_ASSERT(x.processor == y.processor && x.memory_bytes == y.memory_bytes && x.last_move == y.last_move);
      RC_ASSERT(x.partners == y.partners && x.left == y.left);
      RC_ASSERT(x.not_migratable == y.not_migratable && x.no_moves_to == y.no_moves_to);
    }
    RC_ASSERT(read->supersteps.size() == call.supersteps.size());
    for (std::size_t t = 0; t < call.supersteps.size(); ++t) {
      const decide::MeasuredSuperstep &x = read->supersteps[t], &y = call.supersteps[t];
      RC_ASSERT(x.superstep == y.superstep && x.instructions == y.instructions &&
                x.compute_seconds == y.compute_seconds);
      RC_ASSERT(x.communication_seconds == y.communication_seconds && x.recv_bytes == y.recv_bytes &&
                x.recv_seconds == y.recv_seconds);
    }
    const decide::Params &p = read->params, &q = call.params;
    RC_ASSERT(keeps_cadence(p, q) && p.heuristic == q.heuristic && p.x == q.x && p.horizon == q.horizon &&
              p.min_gain == q.min_gain);
    RC_ASSERT(p.cooldown == q.cooldown && p.max_moves == q.max_moves &&
              p.reuse_vacated_slots == q.reuse_vacated_slots && p.migrates == q.migrates);
  }));
}

// What another heuristic makes of a record is what it would have made of the call itself.
TEST(Record, AnotherHeuristicDecidesOnTheSame) {
  expect(rc::check([] {
    Drawn drawn;
    RandomRun run(drawn.random, drawn.shape, any_heuristic());
    const Call call = run.next();
    const Call read = from_line(to_line(call)).value();
    decide::Params other = call.params;
    other.heuristic = any_heuristic();
    other.min_gain = 0.01;
    decide::Window window(call.state, other, call.snapshot.ranks.size(), call.snapshot.platform.sets.size());
    for (const decide::MeasuredSuperstep& t : call.supersteps) window.add(t);
    RC_ASSERT(difference(*decide::make_plan(call.snapshot, window, other), *replay(read, other)) == "");
  }));
}

// A whole run put into windows again makes every call that was made, also after moves.
TEST(Record, ARunDecidedAgainMakesTheSameCalls) {
  expect(rc::check([] {
    Drawn drawn;
    RandomRun run(drawn.random, drawn.shape, any_heuristic());
    std::optional<Rerun> rerun;
    for (int n = 0; n < 5; ++n) {
      const Call call = run.next();
      if (!rerun) rerun.emplace(call.params);
      const auto plans = rerun->add(call);
      RC_ASSERT(plans && plans->size() == 1);
      RC_ASSERT(difference(call.plan, plans->front()) == "");
    }
  }));
}

// By other parameters the calls come at other times, at which a window of that length ends, and no superstep is lost.
TEST(Record, OtherParametersMakeOtherCalls) {
  expect(rc::check([] {
    Drawn drawn;
    RandomRun run(drawn.random, drawn.shape, any_heuristic());
    std::optional<Rerun> rerun;
    std::uint64_t supersteps = 0, calls = 0;
    RC_PRE(drawn.shape.ranks > 1);
    for (int n = 0; n < 4; ++n) {
      Call call = run.next(/*moves=*/false);
      call.state.cadence.wave = {};  // one that is being taken back is waited for
      RC_PRE(call.params.alpha0 > 1);
      decide::Params other = call.params;
      other.alpha0 = 1;
      other.d0 = 1e-9;  // never balanced, so that alpha stays 1: a call after every superstep
      other.omega = 1'000'000;
      if (!rerun) rerun.emplace(other);
      const auto plans = rerun->add(call);
      RC_ASSERT(plans.has_value());
      calls += plans->size();
      supersteps += call.supersteps.size();
      for (std::size_t c = 0; c < plans->size(); ++c) RC_ASSERT((*plans)[c].superstep == call.supersteps[c].superstep);
    }
    RC_ASSERT(calls == supersteps);
  }));
}

}  // namespace
}  // namespace bsp::record
