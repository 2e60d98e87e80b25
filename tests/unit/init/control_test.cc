// Packets between the sidecar and bsp-init round-trip, and invalid ones are refused.
#include "sidecar/control/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/core/fd.h"

namespace bsp::control {
namespace {

TEST(Control, ReadsAsText) {
  EXPECT_EQ(encode({"exited", {{"code", "1"}, {"message", "no such file: a=b %"}}}),
            "exited code=1 message=no%20such%20file:%20a%3Db%20%25");
  EXPECT_EQ(encode({"kill", {}}), "kill");
}

TEST(Control, EveryByteSurvives) {
  Message message{"verb", {{"", ""}}};
  message.fields.clear();
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  message.fields = {{"all", all}, {"empty", ""}, {"odd key=%", "x"}};
  const auto decoded = decode(encode(message));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, message);
}

TEST(Control, FieldsByType) {
  const Message m{"x", {{"pid", "1000"}, {"bad", "12a"}, {"negative", "-1"}}};
  EXPECT_EQ(m.number("pid"), 1000);
  EXPECT_EQ(m.number("negative"), -1);
  EXPECT_EQ(m.number("bad", 7), 7);
  EXPECT_EQ(m.number("absent", 9), 9);
  EXPECT_EQ(m.text("absent"), "");
}

// The packets of bsp-init and sidecar must never change: either end may be of another version.
TEST(Messages, AreUnchangedByteForByte) {
  const auto text = [](const auto& message) { return encode(packet_of(message)); };
  EXPECT_EQ(text(FromInit(Hello{.mode = Mode::kRestore,
                                .uid = 1000,
                                .gid = 100,
                                .pid = 7,
                                .state = ProgramState::kDumped,
                                .code = 0,
                                .signal = 9,
                                .message = "why so",
                                .migration = "m"})),
            "hello code=0 gid=100 message=why%20so migration=m mode=restore pid=7 protocol=1 signal=9 state=dumped "
            "uid=1000");
  EXPECT_EQ(text(Running{.pid = 7}), "running pid=7");
  EXPECT_EQ(text(Stopped{.pid = 7}), "stopped pid=7");
  EXPECT_EQ(text(Exited{.code = 1, .signal = 0, .message = ""}), "exited code=1 message= signal=0");
  EXPECT_EQ(text(Dumping{.migration = "m", .pid = 8}), "dumping migration=m pid=8");
  EXPECT_EQ(text(Dumped{.migration = "m", .ns = 9}), "dumped migration=m ns=9");
  EXPECT_EQ(text(DumpFailed{.migration = "m", .message = "x"}), "dump-failed message=x migration=m");
  EXPECT_EQ(text(Restored{.migration = "m", .pid = 7, .ns = 9}), "restored migration=m ns=9 pid=7");
  EXPECT_EQ(text(Restored{.migration = "m", .pid = 7, .ns = 9, .features = 5}),
            "restored features=5 migration=m ns=9 pid=7");
  EXPECT_EQ(text(ToInit(Start{.features = 5})), "start features=5");
  EXPECT_EQ(text(RestoreFailed{.migration = "m", .message = "x"}), "restore-failed message=x migration=m");
  EXPECT_EQ(text(Discarded{.migration = "m"}), "discarded migration=m");
  EXPECT_EQ(text(Throttled{.ns = 9}), "throttled ns=9");
  EXPECT_EQ(text(ToInit(Dump{.migration = "m"})), "dump migration=m");
  EXPECT_EQ(text(ToInit(Dump{.migration = "m", .notes = NotedFiles::kWritten})), "dump migration=m notes=written");
  EXPECT_EQ(text(Restore{.migration = "m", .ignore_files = 1}), "restore ignore_files=1 migration=m");
  EXPECT_EQ(text(Restore{.migration = "m", .cut = 1}), "restore cut=1 migration=m");
  EXPECT_EQ(text(Restored{.migration = "m", .pid = 7, .ns = 9, .note = "cut"}),
            "restored migration=m note=cut ns=9 pid=7");
  EXPECT_EQ(text(Abandon{.migration = "m"}), "abandon migration=m");
  EXPECT_EQ(text(Restore{.migration = "m"}), "restore migration=m");
  EXPECT_EQ(text(Continue{.epoch = 3}), "continue epoch=3");
  EXPECT_EQ(text(Discard{.migration = "m"}), "discard migration=m");
  EXPECT_EQ(text(Kill{}), "kill");
  EXPECT_EQ(text(Kill{.reason = "cut off"}), "kill reason=cut%20off");
  EXPECT_EQ(text(Bye{}), "bye");
  EXPECT_EQ(text(Stay{}), "stay");
  EXPECT_EQ(text(Quit{.code = 3}), "quit code=3");
  EXPECT_EQ(text(Fresh{.ns = 9}), "fresh ns=9");
}

TEST(Messages, EveryProgramStateHasItsName) {
  std::string names;
  for (const std::string_view name : EnumNames<ProgramState>::names) names += std::string(name) + " ";
  EXPECT_EQ(names, "waiting running stopped dumping dumped restoring restored exited ");
}

TEST(Messages, ParseToTheirTypes) {
  const auto hello = from_init({"hello", {{"uid", "5"}, {"state", "restoring"}, {"code", "x"}, {"later", "field"}}});
  ASSERT_TRUE(hello);
  EXPECT_EQ(std::get<Hello>(*hello).uid, 5u);
  EXPECT_EQ(std::get<Hello>(*hello).state, ProgramState::kRestoring);
  EXPECT_EQ(std::get<Hello>(*hello).code, -1) << "an invalid value counts as absent";
  EXPECT_EQ(std::get<Hello>(*from_init({"hello", {{"state", "flying"}}})).state, std::nullopt);
  EXPECT_EQ(std::get<Kill>(*to_init({"kill", {{"reason", "a b"}}})).reason, "a b");
  EXPECT_FALSE(to_init({"hello", {}})) << "a verb of the other direction";
  EXPECT_FALSE(from_init({"explode", {}}));
}

struct Packet {
  const char* name;
  const char* text;
};
class Broken : public ::testing::TestWithParam<Packet> {};
TEST_P(Broken, IsRefused) {
  const auto decoded = decode(GetParam().text);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::kInvalid);
}
INSTANTIATE_TEST_SUITE_P(Packets, Broken,
                         ::testing::Values(Packet{"Empty", ""}, Packet{"OnlyASpace", " "},
                                           Packet{"NoValue", "verb field"}, Packet{"NoName", "verb =value"},
                                           Packet{"NoDigit", "verb a=%"}, Packet{"OneDigit", "verb a=%4"},
                                           Packet{"NotADigit", "verb a=%GG"}, Packet{"TwoSpaces", "verb a=b  c=d"},
                                           Packet{"ASpaceFirst", " verb"}),
                         [](const auto& tested) { return tested.param.name; });

TEST(Control, TooLongIsRefused) { EXPECT_FALSE(decode("verb a=" + std::string(kMaxPacket, 'x'))); }

TEST(Control, OverASocket) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
  const Fd left(ends[0]);
  Fd right(ends[1]);
  EXPECT_EQ(receive(left.get()).error().code, ErrorCode::kTimeout);
  ASSERT_TRUE(send(right.get(), {"dump", {{"migration", "m 1"}}}));
  ASSERT_TRUE(send(right.get(), {"kill", {}}));
  EXPECT_EQ(receive(left.get())->text("migration"), "m 1");
  EXPECT_EQ(receive(left.get())->verb, "kill");
  right.reset();
  EXPECT_EQ(receive(left.get()).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(send(left.get(), {"late", {}}).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace bsp::control
