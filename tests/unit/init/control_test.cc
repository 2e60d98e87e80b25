// Packets between the sidecar and bsp-init: whatever is put in comes out, and nothing else does.
#include "sidecar/control/control.h"

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
