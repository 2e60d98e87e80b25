// Reservations of many large waves in one ConfigMap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "operator/reconcile/capacity/stores/store.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

// Every other rank of a job, each to a node of its own.
Reservation wave_of(const std::string& job, std::uint32_t moves) {
  Reservation reservation{
      .uid = "uid-of-" + job, .wave = 7, .each = {1000, 1 << 30, 1}, .checkpoint = 1 << 28, .slots = {}, .until = {}};
  for (std::uint32_t i = 0; i < moves; ++i)
    reservation.slots.push_back({std::format("{}-r{}-g{}", job, 2 * i, i % 3), 2 * i, "a-pool-of-nodes",
                                 std::format("gke-cluster-pool-0a1b2c3d-{:04}", i % 250)});
  return reservation;
}

json stored(const Reservations& reservations) { return {{"data", reservation_data(reservations)}}; }

TEST(ReservationSize, AWaveIsReadAsItWasWritten) {
  for (const std::uint32_t moves : {1u, 16u, 17u, 1000u}) {
    Reservations reservations{.of_job = {{"default/job", wave_of("job", moves)}}, .version = {}};
    EXPECT_EQ(reservations_from_json(stored(reservations)).of_job, reservations.of_job) << moves;
  }
  // As nobody makes it, and as an older operator wrote it: a rank twice, out of order.
  Reservations odd{.of_job = {{"default/job", wave_of("job", 40)}}, .version = {}};
  odd.of_job["default/job"].slots.push_back(odd.of_job["default/job"].slots.front());
  EXPECT_EQ(reservations_from_json(stored(odd)).of_job, odd.of_job);
}

TEST(ReservationSize, EightWavesOfAThousandMovesFit) {
  Reservations reservations;
  for (int job = 0; job < 8; ++job) {
    const std::string name = std::format("a-job-of-some-length-{}", job);
    reservations.of_job["a-name-space/" + name] = wave_of(name, 1000);
  }
  const std::size_t bytes = stored(reservations).dump().size();
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_LT(bytes, 400'000u);
  EXPECT_EQ(reservations_from_json(stored(reservations)).of_job.size(), 8u);
}

// Keeps one object.
class OneObject final : public kube::Client {
 public:
  Result<kube::Object> get(const kube::Key&) override {
    if (object.is_null()) return fail(ErrorCode::kNotFound, "none");
    return object;
  }
  Result<std::vector<kube::Object>> list(const kube::Kind&, const std::string&,
                                         const std::map<std::string, std::string>&) override {
    return std::vector<kube::Object>{};
  }
  Result<kube::Object> create(const kube::Object& made) override { return update(made); }
  Result<kube::Object> update(const kube::Object& next) override {
    object = next;
    object["metadata"]["resourceVersion"] = std::to_string(++writes);
    return object;
  }
  Result<kube::Object> update_status(const kube::Object&) override { return fail(ErrorCode::kRefused, "unused"); }
  Result<kube::Object> patch_status(const kube::Key&, const kube::Object&) override {
    return fail(ErrorCode::kRefused, "unused");
  }
  Result<kube::Object> resize_pod(const kube::Key&, const kube::Object&) override {
    return fail(ErrorCode::kRefused, "unused");
  }
  Result<void> remove(const kube::Key&, const std::string&) override { return {}; }
  Result<std::vector<kube::WatchEvent>> wait(const std::vector<kube::Kind>&, const std::string&, std::string&,
                                             std::chrono::milliseconds) override {
    return std::vector<kube::WatchEvent>{};
  }
  kube::Object object;
  int writes = 0;
};

TEST(ReservationSize, WhatDoesNotFitIsRefusedBeforeItIsWritten) {
  OneObject client;
  ObjectReservations store(client, "operators", "reservations");
  const Time now{std::chrono::hours(1000)};
  int kept = 0;
  for (; kept < 100; ++kept) {
    const std::string job = std::format("a-job-of-some-length-{}", kept);
    Reservation reservation = wave_of(job, 1000);
    reservation.until = now + kReservationKept;
    for (ReservedSlot& slot : reservation.slots) slot.node += "-" + job + slot.pod;  // that share nothing
    const Reservations seen = store.read(now);
    const auto reserved = store.reserve(seen, "default/" + job, std::move(reservation), now);
    if (reserved) continue;
    EXPECT_EQ(reserved.error().code, ErrorCode::kNoSpace);
    EXPECT_THAT(reserved.error().message,
                ::testing::HasSubstr("this job waits until waves or starts of others have ended"));
    break;
  }
  EXPECT_GT(kept, 2);
  EXPECT_LT(kept, 100);
  EXPECT_LE(client.object["data"].dump().size(), 1'000'000u);
  EXPECT_EQ(store.read(now).of_job.size(), static_cast<std::size_t>(kept)) << "the others keep theirs";
  EXPECT_TRUE(store.release("default/a-job-of-some-length-0", now)) << "and can give them back";
}

}  // namespace
}  // namespace bsp::reconcile
