// What a sidecar may report that a program has forged or replaced, as far as the wire lets it in, and what may stand in
// status.rescheduler, through every heuristic: nothing ends the operator, and what it stores can be read again by the next one.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

class HostileReports : public Rescheduling, public testing::WithParamInterface<crds::Heuristic> {
 protected:
  std::uint64_t any(std::uint64_t most) {
    switch (random_() % 6) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return most;
      case 3:
        return most - 1;
      case 4:
        return random_() % most;
      default:
        return std::min<std::uint64_t>(most, 1'000'000'000);
    }
  }
  wire::RankReport any_report(std::uint32_t rank, std::uint64_t superstep) {
    wire::SuperstepReport s;
    s.superstep = superstep;
    for (auto* field : {&s.end_ns, &s.instructions, &s.compute_ns, &s.comm_ns, &s.edge_ns, &s.sent_bytes})
      *field = any(wire::kMostNs);
    for (auto* list : {&s.recv_bytes, &s.recv_ns}) {
      list->resize(random_() % 4);
      for (auto& value : *list) value = any(wire::kMostNs);
    }
    wire::RankReport report{.rank = rank,
                            .completed = superstep,
                            .epoch = 1 + random_() % 2,
                            .memory_bytes = any(~0ull),
                            .supersteps = {s}};
    for (std::uint64_t k = random_() % 20; k > 0; --k) {
      report.partners.push_back(static_cast<std::uint32_t>(random_() % 2 ? random_() % 4 : any(~0u)));
      report.partner_bytes.push_back(any(wire::kMostNs));
    }
    if (random_() % 50 == 0) {
      report.edge_call = "MPI_Barrier";
      report.edge_stride = any(~0ull);
      report.edge_chosen_after = random_() % 2 ? superstep - 1 : 0;
    }
    return report;
  }
  // What the operator takes of a message.
  static void give(Rescheduler& r, const wire::RankReport& report) {
    if (const auto read = wire::rank_report_from_json(json(report))) r.add(*read);
  }
  // Every number of what is stored is one, so that JSON can hold it.
  void stores_what_can_be_read(const Rescheduler& r) {
    crds::BspJobStatus status = o.job.status;
    r.store(status, o);
    crds::BspJob job = o.job;
    job.status = status;
    const json written = job;
    each_value(written, "", [](const std::string& path, const json& value) {
      if (value.is_number_float()) {
        EXPECT_TRUE(std::isfinite(value.get<double>())) << path;
      }
    });
    const auto read = crds::bsp_job_from_json(json::parse(written.dump()));
    ASSERT_TRUE(read) << read.error().message;
  }
  static void each_value(const json& j, const std::string& path, const auto& use) {
    use(path, j);
    if (!j.is_structured()) return;
    for (const auto& [name, value] : j.items()) each_value(value, path + "/" + name, use);
  }

  std::mt19937_64 random_{7};
};

TEST_P(HostileReports, AnyFiguresOfAProgramLeadToADecision) {
  o.job.spec.rescheduling.heuristic = GetParam();
  int runs_with_calls = 0;
  for (int run = 0; run < 60; ++run) {
    Rescheduler r(o.job, o.job.status.epoch->sets.size(), true);
    std::uint64_t superstep = run % 2 ? 1 : wire::kMostSupersteps - 60;
    int calls = 0;
    for (int i = 0; i < 60; ++i, ++superstep) {
      for (std::uint32_t rank = 0; rank < 3; ++rank)
        give(r, run % 3 ? any_report(rank, superstep) : report(rank, superstep));
      if (run % 3 == 0) give(r, any_report(0, superstep));
      const auto decided = r.advance(o);
      if (!decided) continue;
      ++calls;
      for (const MoveRequest& move : decided->moves) {
        EXPECT_LT(move.rank, 3u);
        EXPECT_TRUE(std::isfinite(move.predicted_gain_seconds));
      }
      o.job.status.last_decision = decided->decision;
    }
    stores_what_can_be_read(r);
    runs_with_calls += calls > 0;
    if (run % 2 && GetParam() != crds::Heuristic::kAuto) {
      EXPECT_GT(calls, 0) << run;
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(runs_with_calls, 40) << "Auto waits for four supersteps that aren't so hostile that they don't count";
}

// A tenant who may write the status, or another version of the operator.
TEST_P(HostileReports, AnyStoredStateIsContinued) {
  o.job.spec.rescheduling.heuristic = GetParam();
  Rescheduler first = rescheduler();
  feed(first, 1, 6);
  store(first);
  const json good = o.job.status.rescheduler;
  std::vector<json::json_pointer> places;
  each_value(good, "", [&](const std::string& path, const json&) { places.emplace_back(path); });
  const std::vector<json> values{nullptr,
                                 true,
                                 -1,
                                 0,
                                 1e308,
                                 -1e308,
                                 0.5,
                                 9223372036854775807ull,
                                 18446744073709551615ull,
                                 "x",
                                 "AAA",
                                 json::array(),
                                 json::object(),
                                 json::array({1e308, 1e308, -5}),
                                 json::array({nullptr})};
  for (const auto& place : places)
    for (const json& value : values) {
      json changed = good;
      changed[place] = value;
      o.job.status.rescheduler = changed;
      Rescheduler r = rescheduler();
      for (std::uint64_t t = 7; t <= 20; ++t) feed(r, t);
      stores_what_can_be_read(r);
      if (HasFailure()) {
        ADD_FAILURE() << place.to_string() << " = " << value;
        return;
      }
    }
}

TEST_P(HostileReports, AnyParametersAreFollowed) {
  o.job.spec.rescheduling.heuristic = GetParam();
  const json good = o.job;
  json rescheduling = good["spec"]["rescheduling"];
  rescheduling["expectedSupersteps"] = 5000;
  int followed = 0;
  hostile::at_every_place(rescheduling, [&](const json& changed, const auto&) {
    json object = good;
    object["spec"]["rescheduling"] = changed;
    const auto job = crds::bsp_job_from_json(object);
    if (!job || !crds::validate(job->spec)) return;
    o.job.spec = job->spec;
    Rescheduler r = rescheduler();
    for (std::uint64_t t = 1; t <= 20; ++t) feed(r, t);
    stores_what_can_be_read(r);
    ++followed;
  });
  EXPECT_GT(followed, 15);
}

INSTANTIATE_TEST_SUITE_P(Heuristics, HostileReports,
                         testing::Values(crds::Heuristic::kTop, crds::Heuristic::kPercentage, crds::Heuristic::kAutoMig,
                                         crds::Heuristic::kMigCube, crds::Heuristic::kMigHull,
                                         crds::Heuristic::kBottleneck, crds::Heuristic::kAuto),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

}  // namespace
}  // namespace bsp::reconcile
