// The program can write anything to the ring: reading it must end, quickly and with little memory, and yield values
// within the wire's bounds.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "sidecar/agent/collect/ring_file.h"
#include "sidecar/ring/ring_access.h"
#include "tests/unit/sidecar/unopenable.h"

namespace bsp::collect {
namespace {

std::unique_ptr<bsp_ring> a_ring() {
  auto ring = std::make_unique<bsp_ring>();
  std::memset(ring.get(), 0, sizeof *ring);
  bsp_ring_format(ring.get());
  return ring;
}

void put(bsp_ring& ring, std::uint64_t superstep, std::uint64_t value) {
  bsp_superstep_record* record = bsp_record_begin(&ring, superstep);
  for (std::uint64_t* field = &record->end_ns; field != reinterpret_cast<std::uint64_t*>(record + 1); ++field)
    bsp_record_set(field, value);
  bsp_record_publish(record, superstep);
}

// Runs `work` in a separate process, which the kernel ends if it takes longer than any valid ring would.
int status_of(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Ring, AnyClaimedCountIsReadInBoundedTime) {
  constexpr auto kMost = ~0ull;
  for (const std::uint64_t completed : {kMost, kMost - 1, kMost >> 1, 1ull << 62, 256ull, 1ull, 0ull})
    for (const std::uint64_t since : {0ull, 1ull, 1ull << 40, 1ull << 62, kMost}) {
      auto ring = a_ring();
      BSP_RING_STORE_SEQ(ring->completed, completed);
      EXPECT_EQ(status_of([&] {
                  if (make_report(*ring, 0, since).supersteps.size() > BSP_RING_RECORDS) ::_exit(1);
                }),
                0)
          << completed << " since " << since;
    }
}

// The program writes to it on, and would not see another one.
TEST(Ring, ThatCantBeOpenedIsNotReplaced) {
  char directory[] = "/tmp/bsp-ring-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/ring";
  {
    ASSERT_FALSE(RingFile::open(path)->adopted());
  }
  struct stat before{}, after{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  {
    const sidecar::Unopenable held(path);
    const auto ring = RingFile::open(path);
    ASSERT_FALSE(ring);
    EXPECT_TRUE(ring.error().message.contains(path)) << ring.error().message;
  }
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_TRUE(RingFile::open(path)->adopted());
  std::filesystem::remove_all(directory);
}

// The operator takes the report of a program that wrote anything anywhere: its numbers are worthless, but the rank is there.
TEST(Ring, TheReportOfAnyBytesIsWithinTheWiresLimits) {
  std::mt19937_64 random{11};
  for (int run = 0; run < 200; ++run) {
    auto ring = a_ring();
    auto* words = reinterpret_cast<std::uint64_t*>(ring.get());
    for (std::size_t i = 2; i < sizeof *ring / sizeof *words; ++i)
      words[i] = run == 0 ? ~0ull : random() >> random() % 64;
    BSP_RING_STORE(ring->edge_call, 1u);
    for (std::uint64_t s = 1; s <= 3; ++s) ring->records[s].superstep = s;
    BSP_RING_STORE_SEQ(ring->completed, run % 2 ? 3 : ~0ull);
    const auto read = wire::rank_report_from_json(nlohmann::json(make_report(*ring, 0, 0)));
    EXPECT_TRUE(read) << read.error().message;
  }
}

TEST(Ring, LastRecordsOfManyAreReported) {
  auto ring = a_ring();
  for (std::uint64_t s = 1; s <= 1000; ++s) put(*ring, s, s);
  BSP_RING_STORE_SEQ(ring->completed, 1000);
  const wire::RankReport all = make_report(*ring, 3, 0);
  ASSERT_EQ(all.supersteps.size(), BSP_RING_RECORDS);
  EXPECT_EQ(all.supersteps.front().superstep, 745u);
  EXPECT_EQ(all.supersteps.back().superstep, 1000u);
  EXPECT_EQ(make_report(*ring, 3, 998).supersteps.size(), 2u);
  EXPECT_TRUE(make_report(*ring, 3, 1000).supersteps.empty());
  EXPECT_TRUE(make_report(*ring, 3, 2000).supersteps.empty());
}

// A shim of version 5 from before there were partners finds everything where it expects it.
static_assert(BSP_RING_VERSION == 5 && offsetof(bsp_ring, records) == 456 && sizeof(bsp_superstep_record) == 1080 &&
              offsetof(bsp_ring, partners_seq) == 456 + 256 * 1080);

TEST(Ring, PartnersAreReportedOnce) {
  auto ring = a_ring();
  EXPECT_TRUE(make_report(*ring, 3, 0).partners.empty()) << "none found yet";
  bsp_partners heaviest{.superstep = 8, .ranks = {2, 7, ~0u}, .bytes = {1 << 20, 5, ~0ull}};
  bsp_partners_set(ring.get(), &heaviest);
  const wire::RankReport report = make_report(*ring, 3, 7);
  EXPECT_EQ(report.partners, (std::vector<std::uint32_t>{2, 7, ~0u})) << "the operator knows how many ranks there are";
  EXPECT_EQ(report.partner_bytes, (std::vector<std::uint64_t>{1 << 20, 5, wire::kMostNs}));
  EXPECT_TRUE(wire::rank_report_from_json(nlohmann::json(report)));
  EXPECT_TRUE(make_report(*ring, 3, 8).partners.empty());
  heaviest.superstep = 16;
  bsp_partners_set(ring.get(), &heaviest);
  EXPECT_EQ(make_report(*ring, 3, 8).partners.size(), 3u);
}

// A program that was killed while it wrote them, or lies: the rest of the report comes, and soon.
TEST(Ring, PartnersThatNeverSettleAreLeftOut) {
  auto ring = a_ring();
  const bsp_partners heaviest{.superstep = 8, .ranks = {2}, .bytes = {1}};
  bsp_partners_set(ring.get(), &heaviest);
  put(*ring, 1, 1);
  BSP_RING_STORE_SEQ(ring->completed, 1);
  BSP_RING_STORE(ring->partners_seq, 7u);
  EXPECT_EQ(status_of([&] {
              const wire::RankReport report = make_report(*ring, 0, 0);
              if (!report.partners.empty() || report.supersteps.size() != 1) ::_exit(1);
            }),
            0);
  bsp_partners_set(ring.get(), &heaviest);
  EXPECT_EQ(make_report(*ring, 0, 0).partners.size(), 1u) << "the next one that is written in full is read";
}

// Asked at different times, two ranks report the same ones of the supersteps that both rings hold.
TEST(Ring, OfASampleAllRanksReportTheSame) {
  const auto reported = [](std::uint64_t completed, std::uint64_t every) {
    auto ring = a_ring();
    for (std::uint64_t s = 1; s <= completed; ++s) put(*ring, s, s);
    BSP_RING_STORE_SEQ(ring->completed, completed);
    std::vector<std::uint64_t> numbers;
    for (const auto& s : make_report(*ring, 0, 0, every).supersteps) numbers.push_back(s.superstep);
    return numbers;
  };
  const auto early = reported(1000, 2), late = reported(1100, 4);
  std::vector<std::uint64_t> both;
  std::ranges::set_intersection(early, late, std::back_inserter(both));
  EXPECT_LT(early.size(), BSP_RING_RECORDS);
  EXPECT_FALSE(both.empty());
  EXPECT_EQ(std::ranges::count_if(late, [](std::uint64_t s) { return s <= 1000; }), std::ssize(both))
      << "a sample of one in four is a part of that of one in two";
}

}  // namespace
}  // namespace bsp::collect
