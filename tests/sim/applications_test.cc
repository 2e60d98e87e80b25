// The four workloads against values computed by hand from the sources' definitions.
#include "sim/applications/applications.h"

#include <gmock/gmock.h>

#include <numeric>

#include "sim/applications/fractal.h"
#include "sim/applications/lattice_boltzmann.h"
#include "sim/applications/lu.h"
#include "sim/applications/smith_waterman.h"

namespace bsp::sim {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

Demand demand_of(const Workload& workload, std::uint64_t t) {
  Demand demand{.instructions = {1, 2, 3}, .messages = {{RankId{0}, RankId{1}, 5}}};  // must be overwritten
  workload.demand(t, demand);
  return demand;
}

std::vector<Message> messages_to(const Demand& demand, std::uint32_t rank) {
  std::vector<Message> found;
  for (const Message& m : demand.messages)
    if (m.to.value == rank) found.push_back(m);
  return found;
}

double computed(const Demand& demand) {
  return std::accumulate(demand.instructions.begin(), demand.instructions.end(), 0.0);
}

std::string error_of(std::string_view choice, std::uint32_t ranks) {
  const auto made = make_workload(applications(), choice, ranks);
  return made ? "no error" : made.error().message;
}

TEST(LatticeBoltzmannWorkload, TenAndTwentyFiveRanks) {
  const auto ten = make(LatticeBoltzmann{.ranks = 10, .supersteps = 50}),
             more = make(LatticeBoltzmann{.ranks = 25, .supersteps = 50});
  EXPECT_EQ(ten->supersteps(), 50u);
  EXPECT_THAT(demand_of(*ten, 1).instructions, testing::AllOf(testing::SizeIs(10), Each(1e9)));
  EXPECT_DOUBLE_EQ(ten->memory_bytes(RankId{3}, 7), 1.5e6);
  EXPECT_THAT(demand_of(*more, 50).instructions, testing::AllOf(testing::SizeIs(25), Each(4e8)));
  EXPECT_DOUBLE_EQ(more->memory_bytes(RankId{24}, 0), 900e3);
}

TEST(LatticeBoltzmannWorkload, EveryRankButTheLastSendsToItsRightNeighbour) {
  const Demand demand = demand_of(*make(LatticeBoltzmann{.ranks = 4, .supersteps = 1}), 1);
  EXPECT_THAT(demand.messages,
              testing::ElementsAre(Message{RankId{0}, RankId{1}, 100e3}, Message{RankId{1}, RankId{2}, 100e3},
                                   Message{RankId{2}, RankId{3}, 100e3}));
}

TEST(SmithWatermanWorkload, LoadOfTheSecondAntidiagonalIsTheSources) {
  const SmithWaterman ten{.ranks = 10};
  EXPECT_DOUBLE_EQ(ten.l(1), 1e6);
  EXPECT_DOUBLE_EQ(ten.l(2), 565e5);
  EXPECT_DOUBLE_EQ(ten.l(19), 1e9);
}

TEST(SmithWatermanWorkload, EachRankComputesInAsManySuperstepsAsThereAreRanks) {
  const auto workload = make(SmithWaterman{.ranks = 10, .factor = 2});
  ASSERT_EQ(workload->supersteps(), 19u);
  std::vector<int> active(10, 0);
  for (std::uint64_t s = 1; s <= 19; ++s) {
    const Demand demand = demand_of(*workload, s);
    int now = 0;
    for (std::uint32_t j = 0; j < 10; ++j)
      if (demand.instructions[j] > 0) ++active[j], ++now;
    EXPECT_EQ(now, s <= 10 ? s : 20 - s) << "superstep " << s;
  }
  EXPECT_THAT(active, Each(10));
  EXPECT_DOUBLE_EQ(demand_of(*workload, 2).instructions[1], 2 * 565e5);
}

TEST(SmithWatermanWorkload, ComputingRanksSendTheirPartToTheRight) {
  const auto workload = make(SmithWaterman{.ranks = 10});
  EXPECT_THAT(demand_of(*workload, 1).messages, testing::ElementsAre(Message{RankId{0}, RankId{1}, 500e3}));
  EXPECT_THAT(demand_of(*workload, 19).messages, IsEmpty());  // the last cell
  EXPECT_DOUBLE_EQ(workload->memory_bytes(RankId{0}, 1), 1.2e6);
  EXPECT_DOUBLE_EQ(make(SmithWaterman{.ranks = 50})->memory_bytes(RankId{0}, 1), 800e3);  // the source's own 800 KB
}

TEST(LuWorkload, GridsOfTheSources) {
  EXPECT_EQ(lu_rows(25), 5u);
  EXPECT_EQ(lu_rows(50), 10u);
  EXPECT_EQ(lu_rows(100), 10u);
  EXPECT_EQ(lu_rows(200), 20u);
  EXPECT_EQ(lu_rows(7), 7u);
}

TEST(LuWorkload, TwiceTheOrderAndOneSupersteps) { EXPECT_EQ(make(Lu{.ranks = 25, .order = 500})->supersteps(), 1001u); }

// Order 4 on 2×2 ranks; rank (r,c) = 2r + c has the rows r, r+2 and the columns c, c+2.
TEST(LuWorkload, FirstSecondAndThirdSuperstepOfASmallMatrix) {
  const auto workload = make(Lu{.ranks = 4, .order = 4});
  const Demand first = demand_of(*workload, 1), second = demand_of(*workload, 2), third = demand_of(*workload, 3);
  EXPECT_THAT(first.instructions, Each(0));
  EXPECT_THAT(first.messages, testing::ElementsAre(Message{RankId{0}, RankId{2}, 4}));  // a_00 down its column

  // k = 0: a_10, a_20, a_30 are computed by the ranks of column 0: row 2 by rank 0, rows 1 and 3 by rank 2.
  EXPECT_THAT(second.instructions, testing::ElementsAre(1000, 0, 2000, 0));
  // Rank 3 has rows 1, 3 and columns 1, 3: a_10, a_30 from rank 2, a_01, a_03 from rank 1.
  EXPECT_THAT(messages_to(second, 3),
              testing::ElementsAre(Message{RankId{2}, RankId{3}, 8}, Message{RankId{1}, RankId{3}, 8}));

  // Nine cells are updated: rank 3 has four of them, rank 0 only a_22.
  EXPECT_THAT(third.instructions, testing::ElementsAre(1000, 2000, 2000, 4000));
  EXPECT_THAT(third.messages, testing::ElementsAre(Message{RankId{3}, RankId{1}, 4}));  // a_11 down column 1
}

TEST(LuWorkload, AllCellsAreUpdatedAndTheEndIsEmpty) {
  const std::uint64_t n = 23;
  const auto workload = make(Lu{.ranks = 6, .order = n});
  double updates = 0;
  for (std::uint64_t t = 1; t <= workload->supersteps(); ++t) updates += computed(demand_of(*workload, t)) / 1000;
  double expected = 0;
  for (std::uint64_t k = 0; k < n; ++k) expected += static_cast<double>((n - 1 - k) + (n - 1 - k) * (n - 1 - k));
  EXPECT_DOUBLE_EQ(updates, expected);
  EXPECT_THAT(demand_of(*workload, 2 * n + 1).messages, IsEmpty());
  double cells = 0;
  for (std::uint32_t i = 0; i < 6; ++i) cells += workload->memory_bytes(RankId{i}, 0) / 1.5;
  EXPECT_DOUBLE_EQ(cells, static_cast<double>(n * n));
}

TEST(FractalWorkload, ComparisonsOfTheSources) {
  // d = 40, n = 10: 50 supersteps; 50 ranges with 62.5 domains in 8 isometries.
  const Fractal forty{.ranks = 10, .domain = 40};
  EXPECT_DOUBLE_EQ(forty.comparisons(), 50 * 8 * 62.5);
  EXPECT_EQ(make(forty)->supersteps(), 50u);
  // d = 4, n = 200: 500 supersteps; 500 ranges with 312.5 domains.
  const Fractal four{.ranks = 200, .domain = 4};
  EXPECT_DOUBLE_EQ(four.comparisons(), 500 * 8 * 312.5);
  EXPECT_EQ(make(four)->supersteps(), 500u);
}

TEST(FractalWorkload, ARing) {
  const Demand demand = demand_of(*make(Fractal{.ranks = 3, .domain = 20}), 1);
  EXPECT_THAT(demand.instructions, Each(Fractal({.ranks = 3, .domain = 20}).comparisons() * 1500));
  EXPECT_THAT(demand.messages,
              testing::ElementsAre(Message{RankId{0}, RankId{1}, 800}, Message{RankId{1}, RankId{2}, 800},
                                   Message{RankId{2}, RankId{0}, 800}));
  EXPECT_THAT(demand_of(*make(Fractal{.ranks = 1, .domain = 20}), 1).messages, IsEmpty());
}

TEST(Applications, AreSelectedByName) {
  for (const char* choice :
       {"lattice-boltzmann:supersteps=10", "smith-waterman", "lu:order=12,rows=5", "fractal:domain=20,range=5"}) {
    const auto made = make_workload(applications(), choice, 10);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ((*made)->ranks(), 10u);
    for (std::uint64_t t = 1; t <= (*made)->supersteps(); ++t)
      for (const Message& m : demand_of(**made, t).messages)
        ASSERT_TRUE(m.from != m.to && m.bytes > 0 && m.to.value < 10) << choice;
  }
}

TEST(Applications, BadParametersNameTheRemedy) {
  EXPECT_THAT(error_of("lu", 25), HasSubstr("order"));
  EXPECT_THAT(error_of("lu:order=0", 25), HasSubstr("order"));
  EXPECT_THAT(error_of("lu:order=100,rows=4", 25), testing::AllOf(HasSubstr("rows=4"), HasSubstr("divisor")));
  EXPECT_THAT(error_of("smith-waterman", 1), HasSubstr("at least 2 ranks"));
  EXPECT_THAT(error_of("smith-waterman:first=5,last=4", 8), HasSubstr("last must not be below first"));
  EXPECT_THAT(error_of("fractal:domain=2000", 8), HasSubstr("domain"));
  EXPECT_THAT(error_of("fractal:domain=20,range=0.5", 8), HasSubstr("range"));
  EXPECT_THAT(error_of("lattice-boltzmann:border=0", 8), HasSubstr("border"));
  EXPECT_THAT(error_of("lattice-boltzmann:supersteps=1.5", 8), HasSubstr("supersteps"));
}

}  // namespace
}  // namespace bsp::sim
