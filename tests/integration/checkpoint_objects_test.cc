// The kernel objects that a program may hold: each is intact after a move, or reported as the reason why the rank
// stays. docs/what-moves.md has the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/integration/checkpoint_harness.h"

namespace bsp::test {
namespace {

struct Thing {
  std::string name;
  std::string reason{};  // "": it can move
};
void PrintTo(const Thing& thing, std::ostream* out) { *out << thing.name; }

std::string test_name(const ::testing::TestParamInfo<Thing>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

class Objects : public ::testing::TestWithParam<Thing> {
 protected:
  void SetUp() override {
    std::string why;
    ASSERT_NE(test_image(&why), "") << why;
  }
  static PodOptions options(const std::vector<std::string>& command = {}) {
    return {.command = command, .user = "1000:1000", .more = {"--workdir", "/work"}};
  }
};

class Moving : public Objects {};
TEST_P(Moving, IsUnchangedAfterTwoMoves) { move_twice(options({"/objects", GetParam().name}), options()); }

class Blocking : public Objects {};
TEST_P(Blocking, IsReportedAndTheProgramContinues) {
  stay_for(GetParam().reason, options({"/objects", GetParam().name}), options());
}

class GuardPages : public Objects {};
TEST_F(GuardPages, GuardAfterTwoMoves) { move_twice(options({"/guards"}), options()); }
TEST_F(GuardPages, InLockedMemoryBlock) {
  stay_for("madvise(MADV_GUARD_INSTALL) of the guard pages at", options({"/guards", "locked"}), options());
}
TEST_F(GuardPages, GuardAfterDumpsThatFailed) { fail_twice(options({"/guards"})); }

class Memory : public Objects {};
TEST_F(Memory, IsWipedOnForkDroppableAndLockedOnFaultAfterTwoMoves) { move_twice(options({"/memory"}), options()); }

INSTANTIATE_TEST_SUITE_P(Things, Moving,
                         ::testing::Values(Thing{"eventfd"}, Thing{"epoll"}, Thing{"signalfd"}, Thing{"inotify-unused"},
                                           Thing{"memfd"}, Thing{"posix-memory"}, Thing{"unlinked-semaphore"},
                                           Thing{"timers"}, Thing{"locks"}, Thing{"pipe"}, Thing{"proc"}, Thing{"sys"},
                                           Thing{"devices"}, Thing{"zombie"}, Thing{"descriptor-flags"},
                                           Thing{"epoll-flags"}, Thing{"memfd-seals"}, Thing{"lock-flags"},
                                           Thing{"pidfd"}, Thing{"terminal"}, Thing{"last-descriptor"},
                                           Thing{"surroundings"}),
                         test_name);

INSTANTIATE_TEST_SUITE_P(
    Things, Blocking,
    ::testing::Values(Thing{"child", "another process"}, Thing{"open-queue", "is a POSIX message queue (/queue)"},
                      Thing{"closed-queue", "a POSIX message queue, /queue;"},
                      Thing{"attached-segment", "a System V shared memory segment"},
                      Thing{"segment", "a System V shared memory segment"},
                      Thing{"semaphore-set", "a System V semaphore set"},
                      Thing{"message-queue", "a System V message queue"}, Thing{"inotify", "is an inotify watch"},
                      Thing{"eventfd-semaphore", "is an eventfd made with EFD_SEMAPHORE"},
                      Thing{"eventfd-wide", "is an eventfd whose count has more than 32 bits"},
                      Thing{"own-descriptors", "has descriptors of its own"},
                      Thing{"own-directory", "has a working directory and umask of its own"},
                      Thing{"deep-directory", "the working directory has a name by which criu can't open it"},
                      Thing{"huge-pages", "is a file of huge pages"},
                      Thing{"packet-pipe", "is a pipe made with O_DIRECT"},
                      Thing{"named-semaphore", "(as after sem_open)"}, Thing{"udp", "an open socket"},
                      Thing{"unix-pair", "an open socket"}, Thing{"netlink", "an open socket"}),
    test_name);

}  // namespace
}  // namespace bsp::test
