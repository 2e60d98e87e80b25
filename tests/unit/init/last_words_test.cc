#include "sidecar/init/last_words.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/core/read_file.h"
#include "sidecar/ring/ring.h"

namespace bsp::init {
namespace {

namespace fs = std::filesystem;

class LastWords : public ::testing::Test {
 protected:
  LastWords() {
    char name[] = "/tmp/bsp-last-words-XXXXXX";
    directory_ = ::mkdtemp(name);
    ring_ = directory_ + "/ring", log_ = directory_ + "/termination-log";
    std::ofstream log(log_);
  }
  ~LastWords() override { fs::remove_all(directory_); }

  void set_state(bsp_rank_state state) {
    auto ring = std::make_unique<bsp_ring>();
    ring->state = state;
    std::ofstream(ring_, std::ios::binary).write(reinterpret_cast<const char*>(ring.get()), sizeof *ring);
  }
  std::string message() const { return read_file(log_).value(); }

  std::string directory_, ring_, log_;
};

TEST_F(LastWords, AreOfAProgramThatHasFinalized) {
  for (const auto state : {BSP_RANK_STARTING, BSP_RANK_OPENING, BSP_RANK_RUNNING, BSP_RANK_AT_GATE, BSP_RANK_CLOSING}) {
    set_state(state);
    note_finalized(ring_, log_);
    EXPECT_EQ(message(), "") << state;
  }
  set_state(BSP_RANK_FINALIZED);
  note_finalized(ring_, log_);
  EXPECT_EQ(message(), "the program had returned from MPI_Finalize\n");
}

TEST_F(LastWords, AreOfAProgramThatHasAborted) {
  note_reason("", log_);
  note_reason("the program's MPI library is MPICH", log_);
  EXPECT_EQ(message(), "");
  note_reason("bsp: rank 3: the program called MPI_Abort(7)", log_);
  EXPECT_EQ(message(), "the program called MPI_Abort\n");
}

TEST_F(LastWords, AreOfAProgramWhosePeersWereLostBetweenEpochs) {
  note_reason("bsp: rank 3: MPI failed at epoch 7: MPI_Comm_create_from_group: MPI_ERR_UNKNOWN", log_);
  EXPECT_EQ(message(), "MPI failed at epoch\n");
}

TEST_F(LastWords, ComeAfterTheProgramsOwn) {
  std::ofstream(log_) << "disk quota exceeded";
  set_state(BSP_RANK_FINALIZED);
  note_finalized(ring_, log_);
  EXPECT_EQ(message(), "disk quota exceeded\nthe program had returned from MPI_Finalize\n");
}

TEST_F(LastWords, AreLeftOutWhereTheyCannotBeWritten) {
  set_state(BSP_RANK_FINALIZED);
  note_finalized(ring_, directory_ + "/none");
  EXPECT_FALSE(fs::exists(directory_ + "/none")) << "outside Kubernetes nobody reads it";
  note_finalized(ring_, directory_);
  const std::string elsewhere = directory_ + "/elsewhere", link = directory_ + "/link", fifo = directory_ + "/fifo";
  std::ofstream(elsewhere) << "data";
  fs::create_symlink(elsewhere, link);
  note_finalized(ring_, link);
  EXPECT_EQ(read_file(elsewhere).value(), "data") << "the program may have replaced it";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  note_finalized(ring_, fifo);
  note_finalized(fifo, log_);
  fs::remove(ring_);
  note_finalized(ring_, log_);
  std::ofstream(ring_) << "short";
  note_finalized(ring_, log_);
  EXPECT_EQ(message(), "");
}

}  // namespace
}  // namespace bsp::init
