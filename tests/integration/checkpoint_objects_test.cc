// The kernel objects that a program may hold: each is intact after a move, or reported as the reason why the rank
// stays. docs/what-moves.md has the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/integration/checkpoint_harness.h"

namespace bsp::test {
namespace {

using ::testing::HasSubstr;

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
TEST_P(Moving, IsUnchangedAfterTwoMoves) {
  Pod first(options({"/objects", GetParam().name}));
  ASSERT_TRUE(first.expect(control::Stopped::kVerb)) << first.errors();
  Pod second(options());
  move(first, second, "move-1");
  ASSERT_FALSE(HasFatalFailure());
  const auto at_second = second.expect_any({control::Stopped::kVerb, control::Exited::kVerb});
  EXPECT_EQ(second.errors(), "");
  ASSERT_TRUE(at_second && at_second->verb == control::Stopped::kVerb);
  Pod third(options());
  move(second, third, "move-2");
  ASSERT_FALSE(HasFatalFailure());
  const auto exited = third.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(third.errors(), "");
  EXPECT_EQ(exited->number("code"), 0);
}

class Blocking : public Objects {};
TEST_P(Blocking, IsReportedAndTheProgramContinues) {
  Pod source(options({"/objects", GetParam().name}));
  ASSERT_TRUE(source.expect(control::Stopped::kVerb)) << source.errors();
  Pod target(options());
  const MoveResult moved = dump_into(source, target, "held");
  EXPECT_EQ(moved.verdict.verb, control::DumpFailed::kVerb);
  EXPECT_THAT(moved.verdict.text("message"), HasSubstr("not migratable now: "));
  EXPECT_THAT(moved.verdict.text("message"), HasSubstr(GetParam().reason));
  source.send(control::Continue::kVerb);
  EXPECT_TRUE(source.expect(control::Stopped::kVerb));
  EXPECT_EQ(source.errors(), "");
}

INSTANTIATE_TEST_SUITE_P(Things, Moving,
                         ::testing::Values(Thing{"eventfd"}, Thing{"epoll"}, Thing{"signalfd"}, Thing{"inotify-unused"},
                                           Thing{"memfd"}, Thing{"posix-memory"}, Thing{"unlinked-semaphore"},
                                           Thing{"timers"}, Thing{"locks"}, Thing{"pipe"}, Thing{"proc"}, Thing{"sys"},
                                           Thing{"devices"}, Thing{"zombie"}, Thing{"pidfd"}, Thing{"terminal"}),
                         test_name);

INSTANTIATE_TEST_SUITE_P(
    Things, Blocking,
    ::testing::Values(Thing{"child", "another process"}, Thing{"open-queue", "is a POSIX message queue (/queue)"},
                      Thing{"closed-queue", "a POSIX message queue, /queue;"},
                      Thing{"attached-segment", "a System V shared memory segment"},
                      Thing{"segment", "a System V shared memory segment"},
                      Thing{"semaphore-set", "a System V semaphore set"},
                      Thing{"message-queue", "a System V message queue"}, Thing{"inotify", "is an inotify watch"},
                      Thing{"named-semaphore", "(as after sem_open)"}, Thing{"udp", "an open socket"},
                      Thing{"unix-pair", "an open socket"}, Thing{"netlink", "an open socket"}),
    test_name);

}  // namespace
}  // namespace bsp::test
