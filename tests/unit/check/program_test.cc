#include "operator/check/program.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "sidecar/ring/ring_access.h"

namespace bsp::checking {
namespace {

class ReadProgram : public testing::Test {
 protected:
  ReadProgram() : ring(std::make_unique<bsp_ring>()) {
    char name[] = "/tmp/bsp-check-XXXXXX";
    directory = mkdtemp(name);
    bsp_ring_format(ring.get());
  }
  ~ReadProgram() override { std::filesystem::remove_all(directory); }

  std::optional<Program> read(std::size_t bytes = sizeof(bsp_ring)) {
    std::ofstream(directory + "/ring", std::ios::binary)
        .write(reinterpret_cast<const char*>(ring.get()), static_cast<std::streamsize>(bytes));
    return read_program(directory);
  }

  std::unique_ptr<bsp_ring> ring;
  std::string directory;
};

TEST_F(ReadProgram, NoRing) { EXPECT_FALSE(read_program(directory)); }

TEST_F(ReadProgram, BeforeMpiInit) {
  const auto program = read();
  ASSERT_TRUE(program);
  EXPECT_EQ(program->open_mpi, "");
  EXPECT_EQ(program->edge_call, "");
}

TEST_F(ReadProgram, WhatTheShimWrote) {
  ring->mpi_version = 5 << 16 | 0 << 8 | 17;
  ring->fortran = 1;
  ring->thread_level = 3;
  ring->edge_call = 13;
  ring->edge_stride = 20;
  ring->completed = 7;
  ring->collectives[12] = 140;
  const auto program = read();
  ASSERT_TRUE(program);
  EXPECT_EQ(program->open_mpi, "5.0.17");
  EXPECT_TRUE(program->fortran);
  EXPECT_EQ(program->thread_level, 3);
  EXPECT_EQ(program->edge_call, "MPI_Allreduce");
  EXPECT_EQ(program->edge_stride, 20u);
  EXPECT_EQ(program->supersteps, 7u);
  EXPECT_EQ(program->collectives[12], 140u);
}

TEST_F(ReadProgram, WhateverAProgramWritesThere) {
  std::memset(static_cast<void*>(ring.get()), 0xff, sizeof(bsp_ring));
  bsp_ring_format(ring.get());
  const auto program = read();
  ASSERT_TRUE(program);
  EXPECT_EQ(program->edge_call, "");
  EXPECT_LE(program->thread_level, 3);
  EXPECT_EQ(program->open_mpi, "255.255.255");
  ring->magic = 1;
  EXPECT_FALSE(read());
  bsp_ring_format(ring.get());
  EXPECT_FALSE(read(100)) << "truncated";
}

TEST_F(ReadProgram, NeitherALinkNorAFifo) {
  ASSERT_EQ(symlink("/etc/passwd", (directory + "/ring").c_str()), 0);
  EXPECT_FALSE(read_program(directory));
  std::filesystem::remove(directory + "/ring");
  ASSERT_EQ(mkfifo((directory + "/ring").c_str(), 0600), 0);
  EXPECT_FALSE(read_program(directory));
}

}  // namespace
}  // namespace bsp::checking
