// The packed forms of a status: what is packed is unpacked as it was, and what isn't packed so is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <nlohmann/json.hpp>
#include <random>

#include "crds/bspjob.h"
#include "crds/fields.h"
#include "crds/reflect.h"

namespace bsp::crds {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Strings = std::vector<std::string>;

Result<void> taken(const RankGroups& groups, std::size_t ranks, Strings& out) {
  out.assign(ranks, "");
  return ungroup_ranks(groups, ranks, [&](std::size_t rank, const std::string& value) -> Result<void> {
    out[rank] = value;
    return {};
  });
}

TEST(RankGroups, AreRunsByValue) {
  const Strings values{"a", "a", "a", "b", "", "a", "b", "b"};
  const RankGroups groups = group_ranks(values.size(), [&](std::size_t i) { return values[i]; });
  EXPECT_THAT(groups, ElementsAre(Pair("a", "0-2,5"), Pair("b", "3,6-7")));
  Strings again;
  ASSERT_TRUE(taken(groups, values.size(), again));
  EXPECT_EQ(again, values);
}

TEST(RankGroups, OfOneValueAreRuns) {
  EXPECT_EQ(runs_of({}), "");
  EXPECT_EQ(runs_of({7, 2, 0, 1, 7}), "0-2,7");
  EXPECT_EQ(runs_of({~std::size_t{0}, 0}), "0,18446744073709551615");
}

TEST(RankGroups, RefuseWhatIsNoAscendingListOfRanks) {
  for (const char* text :
       {"", "x", "1-", "-1", "4", "0-4", "2-1", "1,1", "0-2,1", "3,0", "1 2", "18446744073709551616", "0--1"}) {
    Strings out;
    const auto good = taken({{"a", text}}, 4, out);
    ASSERT_FALSE(good) << text;
    EXPECT_EQ(good.error().message, std::format("a: \"{}\" must be ranks below 4, ascending, such as 0-49,77",
                                                std::string_view(text).substr(std::string_view(text).rfind(',') + 1)));
  }
}

TEST(RankLists, ShortenAddresses) {
  const Strings addresses{"10.0.3.17:7600",
                          "10.0.3.18:7600",
                          "10.0.4.2:7600",
                          "10.0.4.2:7601",
                          "10.1.4.2:7601",
                          "[fd00::1:2]:7",
                          "[fd00::1:3]:7",
                          "[fd00::2:3]:7",
                          "[fd00:10:244::5:6:1]:7",
                          "",
                          "node",
                          "node:1",
                          "10.0.0.1:1",
                          ""};
  const std::string packed = pack_addresses(addresses);
  EXPECT_EQ(
      packed,
      "10.0.3.17:7600,.18,.4.2,.2:7601,.1.4.2,[fd00::1:2]:7,:3],:2:3],[fd00:10:244::5:6:1],:,node,node:1,10.0.0.1,:");
  EXPECT_EQ(unpack_addresses(packed, addresses.size()).value(), addresses);
}

TEST(RankLists, UuidsTake22Characters) {
  const Strings uids{"6fa459ea-ee8a-4ca4-894e-db77e160355e", "uid-7", "", "0123456789012345678901", "=x",
                     "6FA459EA-EE8A-4CA4-894E-DB77E160355E"};
  const std::string packed = pack_uids(uids);
  EXPECT_EQ(packed.find(','), 22u);
  EXPECT_EQ(unpack_uids(packed, uids.size()).value(), uids);
}

TEST(RankLists, ComeBackWhateverTheyAre) {
  std::mt19937 random(11);
  const std::string_view characters = ".:[]=a0-1f";
  for (int round = 0; round < 2000; ++round) {
    Strings values(random() % 6);
    for (std::string& value : values)
      // Any text but a separator at its beginning, with which no host begins, and at its end, without a port.
      for (unsigned n = random() % 12; n > 0; --n) value += characters[random() % characters.size()];
    EXPECT_EQ(unpack_uids(pack_uids(values), values.size()).value(), values);
    for (std::string& value : values)
      value = std::format("10.{}.{}.{}:{}", random() % 2, random() % 2, random() % 256, random() % 3);
    EXPECT_EQ(unpack_addresses(pack_addresses(values), values.size()).value(), values);
  }
}

TEST(RankLists, RefuseTooManyAndTooFew) {
  EXPECT_EQ(unpack_uids("a,b", 3).error().message, "has 2 entries for 3 ranks");
  EXPECT_EQ(unpack_uids("a,b,c,d,e,f", 3).error().message, "has 4 entries for 3 ranks");
  EXPECT_EQ(unpack_addresses("a,b", 1).error().message, "has 2 entries for 1 rank");
  EXPECT_FALSE(unpack_uids("?123456789012345678901", 1)) << "no base64";
  EXPECT_EQ(unpack_addresses(".1.2.3.4.5.6,.7.8", 2).value(), (Strings{".1.2.3.4.5.6", ".1.2.3.4.7.8"}))
      << "nothing to cut";
}

// --- status.ranks -----------------------------------------------------------------------------------------------
RankPlaces places(std::uint32_t ranks) {
  RankPlaces all;
  for (std::uint32_t r = 0; r < ranks; ++r)
    all.push_back(
        {{r}, r < 2 ? "slow" : "fast", std::format("node-{}", r / 2), std::format("a-r1-b-r{}-g0", r), 1, 0, 0, 0, ""});
  return all;
}

TEST(Places, ArePackedByWhatRanksHaveInCommon) {
  RankPlaces all = places(5);
  all[3].pod = "a-r1-b-r3-g2";  // it has moved once, and another target was never used
  all[3].generation = 4;
  all[4].memory_bytes = (64 << 20) + 1;
  all[1].blocked_reason = "not migratable now: an open window";
  for (RankPlace& place : all) place.time_seconds = 2.00004;
  all[0].compute_seconds = 1.23456;
  const PackedPlaces packed = pack(all);
  EXPECT_THAT(packed.place,
              ElementsAre(Pair("fast/node-1", "2-3"), Pair("fast/node-2", "4"), Pair("slow/node-0", "0-1")));
  EXPECT_THAT(packed.pod, ElementsAre(Pair("a-r1-b-r*-g0", "0-2,4"), Pair("a-r1-b-r*-g2", "3")));
  EXPECT_THAT(packed.generation, ElementsAre(Pair("4", "3")));
  EXPECT_THAT(packed.memory, ElementsAre(Pair("65Mi", "4")));
  EXPECT_THAT(packed.time_seconds, ElementsAre(Pair("2", "0-4")));
  EXPECT_THAT(packed.compute_seconds, ElementsAre(Pair("1.235", "0")));
  EXPECT_THAT(packed.blocked_reason, ElementsAre(Pair("not migratable now: an open window", "1")));
  RankPlaces again;
  ASSERT_TRUE(unpack(packed, again));
  ASSERT_EQ(again.size(), 5u);
  EXPECT_EQ(again[3].pod, all[3].pod);
  EXPECT_EQ(again[3].generation, 4u);
  EXPECT_EQ(again[2].generation, 1u);
  EXPECT_EQ(again[2].set, "fast");
  EXPECT_EQ(again[2].node, "node-1");
  EXPECT_EQ(again[4].memory_bytes, 65u << 20);
  EXPECT_EQ(again[1].blocked_reason, all[1].blocked_reason);
}

// Ranks 0 to 2 share a pod, 3 to 5 another, which rank 4 has left for one of its own; 6 is in a seat of 3's pod too.
TEST(Places, ArePackedByTheSeatsOfTheirPods) {
  RankPlaces all = places(7);
  wire::EpochPlan plan{.epoch = 2, .pmix_namespace = "uid-e2", .sets = {"slow", "fast"}, .members = {}};
  for (std::uint32_t r = 0; r < all.size(); ++r) {
    all[r].pod = std::format("a-r{}-g0", r / 3 * 3);
    all[r].local = r % 3;
  }
  all[4].pod = "a-r4-g1";
  all[4].local = 0;
  all[6].pod = "a-r3-g0";
  all[6].local = 1;
  for (const RankPlace& place : all)
    plan.members.push_back({place.rank.value, place.pod, "uid-" + place.pod, "10.0.0.1:7600", 0, place.local});
  const PackedPlaces packed = pack(all);
  EXPECT_THAT(packed.pod, ElementsAre(Pair("a-r*-g0", "0-3,5"), Pair("a-r*-g1", "4"), Pair("a-r3-g0", "6")));
  EXPECT_THAT(packed.seat, ElementsAre(Pair("1", "6"), Pair("2", "5"), Pair(kNextSeat, "1-2")));
  RankPlaces again;
  ASSERT_TRUE(unpack(packed, again));
  for (std::uint32_t r = 0; r < all.size(); ++r) EXPECT_EQ(again[r].seat(), all[r].seat()) << r;
  CommittedEpoch epoch;
  ASSERT_TRUE(unpack(pack(CommittedEpoch(plan)), epoch));
  EXPECT_EQ(epoch.members, plan.members);
  for (const auto& [value, ranks] :
       {std::pair{"next", "0"}, {"256", "1"}, {"-1", "1"}, {"x", "1"}, {"1 ", "1"}, {"", "1"}}) {
    PackedPlaces wrong = packed;
    wrong.seat = {{value, ranks}};
    EXPECT_FALSE(unpack(wrong, again)) << value;
  }
}

TEST(Seat, IsNamedByItsPodAndContainer) {
  EXPECT_EQ(container_of(0), "app");
  EXPECT_EQ(container_of(12), "app-12");
  EXPECT_EQ(name_of({"a-r0-g0", 0}), "a-r0-g0");
  EXPECT_EQ(name_of({"a-r0-g0", 2}), "a-r0-g0/app-2");
  for (const std::uint32_t local : {0u, 1u, 12u, 255u}) EXPECT_EQ(local_of(container_of(local)), local);
  for (const char* other :
       {"", "a", "app-", "app-0", "app-01", "app-x", "app-1x", "app-256", "app1", "sidecar", "app--1"})
    EXPECT_EQ(local_of(other), std::nullopt) << other;
}

// Any rank may say 1 KiB of its own, and measure a time of its own.
TEST(Places, KeepTheCommonestReasonsAndTheSlowestRanks) {
  RankPlaces all = places(1000);
  for (std::uint32_t r = 0; r < all.size(); ++r) {
    all[r].compute_seconds = 1 + r * 1e-3;
    all[r].blocked_reason = r % 2 ? "not migratable now: an open file" : std::string(1024, 'x') + std::to_string(r);
  }
  const PackedPlaces packed = pack(all);
  EXPECT_EQ(packed.compute_seconds.size(), kShownRanks);
  EXPECT_TRUE(packed.compute_seconds.contains("1.999"));
  EXPECT_EQ(packed.blocked_reason.size(), kShownReasons + 1) << "and one for all others";
  EXPECT_TRUE(packed.blocked_reason.contains("not migratable now: an open file"));
  RankPlaces again;
  ASSERT_TRUE(unpack(packed, again));
  for (const RankPlace& place : again) EXPECT_FALSE(place.blocked_reason.empty());
}

TEST(Places, ErrorsNameTheField) {
  BspJobStatus status;
  status.ranks = places(2);
  status.epoch = wire::EpochPlan{
      1, "uid-e1", {"slow"}, {{0, "j-r0-g0", "u0", "10.0.0.1:1", 0}, {1, "j-r1-g0", "u1", "10.0.0.2:1", 0}}};
  const nlohmann::json good = reflect::write(status);
  for (const auto& [path, value, error] :
       {std::tuple<const char*, nlohmann::json, const char*>{
            "/ranks/place",
            {{"slow/n", "0-2"}},
            "status.ranks: place: slow/n: \"0-2\" must be ranks below 2, ascending, such as 0-49,77"},
        {"/ranks/computeSeconds", {{"nan", "0"}}, "status.ranks: computeSeconds: nan: must be a finite number"},
        {"/ranks/count", 1e9, "status.ranks.count: 1000000000.0 is too large; the most is 150000"},
        {"/epoch/members/pod",
         {{"fast/j-r*-g0", "0-1"}},
         "status.epoch: members.pod: fast/j-r*-g0: fast is none of sets"},
        {"/epoch/members/address", "a,b,c", "status.epoch: members.address: has 3 entries for 2 ranks"}}) {
    nlohmann::json bad = good;
    bad[nlohmann::json::json_pointer(path)] = value;
    const auto read = reflect::read<BspJobStatus>(bad, "status");
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().message, error);
  }
}

}  // namespace
}  // namespace bsp::crds
