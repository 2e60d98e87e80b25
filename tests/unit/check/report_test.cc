#include "operator/check/report.h"

#include <gmock/gmock.h>

namespace bsp::checking {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Report moved() {
  Report r;
  r.image = "image";
  r.command = "program -n 3";
  r.watched_seconds = 4;
  r.superstep_seconds = 0.0776;
  r.cpu = *CpuFeatures::from_names(
      "pni,ssse3,sse4_1,sse4_2,popcnt,cx16,lahf_lm,movbe,abm,bmi1,bmi2,xsave,avx,f16c,fma,avx2,gfni,avx512f,aes");
  r.program.open_mpi = "5.0.7";
  r.program.edge_call = "MPI_Barrier";
  r.program.edge_stride = 3;
  r.program.collectives[0] = 157;
  r.program.collectives[12] = 1;
  for (const std::uint32_t rank : {1u, 0u}) {
    Move& m = r.moves.emplace_back();
    m.rank = rank;
    m.succeeded = true;
    m.bytes = 8 << 20;
    m.pause = {.total_ms = 200,
               .gate_ms = 36,
               .close_ms = 6,
               .dump_ms = 63,
               .transfer_ms = 63,
               .restore_ms = 19,
               .commit_ms = 12,
               .open_ms = 94};
  }
  return r;
}

TEST(Report, OfAProgramWhoseRanksMove) {
  EXPECT_THAT(lines_of(moved()), ElementsAre("MPI               Open MPI 5.0.7, C bindings, MPI_THREAD_SINGLE",
                                             "Supersteps        end at every 3rd MPI_Barrier, every 77.6 ms",
                                             "Collectives       MPI_Barrier 157 (39.2/s), MPI_Allreduce 1 (0.25/s)",
                                             "Moves             rank 1: pause 200 ms (gate 36, close 6, dump 63, "
                                             "transfer 63, restore 19, commit 12, open 94), "
                                             "checkpoint 8.0 MiB",
                                             "                  rank 0: pause 200 ms (gate 36, close 6, dump 63, "
                                             "transfer 63, restore 19, commit 12, open 94), "
                                             "checkpoint 8.0 MiB",
                                             "Held back by      nothing", HasSubstr("x86-64-v3 aes avx512f gfni; "),
                                             "Outcome           its ranks move"));
}

TEST(Report, OfAProgramThatNeverCameToMpi) {
  Report r;
  r.failure = "it failed: no such command";
  EXPECT_THAT(lines_of(r),
              ElementsAre("MPI               not initialised", "Supersteps        not known",
                          "Collectives       not known", "Moves             none tried", "Held back by      not tried",
                          HasSubstr("x86-64; "), "Outcome           it failed: no such command"));
}

TEST(Report, OfARankThatIsHeldBack) {
  Report r = moved();
  r.moves = {Move{.rank = 1, .succeeded = false, .message = "not within 60 s", .pause = {}}};
  r.holds = {{1, "an open RMA window"}, {0, "an open RMA window"}};
  const auto lines = lines_of(r);
  EXPECT_EQ(lines[3], "Moves             rank 1: not moved: not within 60 s");
  EXPECT_EQ(lines[4], "Held back by      rank 1: an open RMA window");
  EXPECT_EQ(lines[5], "                  rank 0: an open RMA window");
}

TEST(Report, Ordinals) {
  Report r = moved();
  for (const auto& [stride, text] : {std::pair{1u, "every MPI_Barrier"},
                                     {2u, "every 2nd MPI_"},
                                     {11u, "every 11th MPI_"},
                                     {112u, "every 112th MPI_"},
                                     {121u, "every 121st MPI_"}}) {
    r.program.edge_stride = stride;
    EXPECT_THAT(lines_of(r)[1], HasSubstr(text));
  }
}

TEST(Report, AsJson) {
  const auto j = json_of(moved());
  EXPECT_EQ(j["kind"], "ProgramCheck");
  EXPECT_EQ(j["movable"], true);
  EXPECT_EQ(j["superstepEnds"]["stride"], 3);
  EXPECT_EQ(j["collectives"][0]["call"], "MPI_Barrier");
  EXPECT_EQ(j["moves"][1]["checkpointBytes"], 8 << 20);
  EXPECT_EQ(j["moves"][1]["pauseMs"]["open"], 94);
  EXPECT_EQ(j["cpu"], (nlohmann::json{{"level", "x86-64-v3"}, {"features", {"aes", "avx512f", "gfni"}}}));
  EXPECT_EQ(json_of(Report{})["mpi"], nullptr);
  EXPECT_EQ(json_of(Report{})["superstepEnds"], nullptr);
}

}  // namespace
}  // namespace bsp::checking
