// What is learned of messages from how long they took: where ranks share a pod, after they have left it, and of values that can't be.
#include "operator/observe/message_prices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "operator/observe/yardstick.h"

namespace bsp::observe {
namespace {

constexpr double kBytes = 8e4, kMessages = 1e4;  // of rank 0 from rank 1, in a superstep

decide::MeasuredSuperstep heard(double bytes, double seconds) {
  decide::Grid<double> received(2, 1), took(2, 1);
  received[0, 0] = bytes, took[0, 0] = seconds;
  decide::MeasuredSuperstep t{.superstep = {1}};
  t.recv_bytes = received, t.recv_seconds = took;
  return t;
}

void add(MessagePrices& prices, double bytes, double seconds, bool in_pod, int times = 20) {
  const std::vector<decide::Partner> one{{{1}, 1}}, none;
  const std::vector<std::string> pods{"a", in_pod ? "a" : "b"};
  for (int t = 0; t < times; ++t) prices.add(heard(bytes, seconds), {"s"}, {"s", "s"}, pods, {one, none});
}

double in_pod() { return kBytes * MessagePrices::kShared.byte + kMessages * MessagePrices::kShared.message; }
double across(double message) { return kBytes * MessagePrices::kApart.byte + kMessages * message; }

TEST(MessagePrices, ARankThatLeavesItsPodShowsWhatMessagesCostAcross) {
  MessagePrices prices;
  EXPECT_EQ(prices.messages_per_byte(0), 0);
  EXPECT_EQ(prices.apart("s"), MessagePrices::kApart);
  add(prices, kBytes, in_pod(), true);
  EXPECT_NEAR(prices.messages_per_byte(0) * kBytes, kMessages, 1e-6 * kMessages);
  EXPECT_EQ(prices.apart("s"), MessagePrices::kApart) << "nobody has been apart";
  add(prices, kBytes, across(23e-6), false, 60);
  EXPECT_NEAR(prices.apart("s").message, 23e-6, 0.1e-6);
  EXPECT_NEAR(prices.messages_per_byte(0) * kBytes, kMessages, 1e-6 * kMessages) << "as it was";
  EXPECT_EQ(prices.apart("other"), MessagePrices::kApart);
}

TEST(MessagePrices, WhoWasNeverInAPodIsTakenAtTheSetsPrice) {
  MessagePrices prices;
  add(prices, kBytes, across(MessagePrices::kApart.message), false);
  EXPECT_NEAR(prices.messages_per_byte(0) * kBytes, kMessages, 1e-6 * kMessages);
  EXPECT_TRUE(prices.learned().empty());
}

// On unequal nodes it is always the same rank that waits: for all that its partner does, also in MPI.
TEST(MessagePrices, WhoWaitsForAPartnerSaysNothingOfMessages) {
  MessagePrices prices;
  const std::vector<decide::Partner> one{{{1}, 1}}, none;
  const auto hear = [&](double seconds, double own, double partners) {
    decide::MeasuredSuperstep t = heard(kBytes, seconds);
    t.compute_seconds = {own, partners};
    for (int n = 0; n < 20; ++n) prices.add(t, {"s"}, {"s", "s"}, {"a", "b"}, {one, none});
  };
  hear(0.4, 0.5, 0.9);
  EXPECT_EQ(prices.messages_per_byte(0), 0);
  EXPECT_GT(prices.at_most_per_byte(0) * kBytes, 1e4) << "of which no link is to blame";
  hear(across(MessagePrices::kApart.message), 0.5, 0.5 * (1 + MessagePrices::kUneven));
  EXPECT_NEAR(prices.messages_per_byte(0) * kBytes, kMessages, 1e-6 * kMessages);
  hear(0.4, 0.5, 0.9);
  EXPECT_NEAR(prices.messages_per_byte(0) * kBytes, kMessages, 1e-6 * kMessages) << "as it was";
}

// Ten milliseconds for two bytes, on a crowded machine, must not become hours for the megabytes that follow.
TEST(MessagePrices, AFewBytesThatTookLongSayLittleOfMany) {
  for (const bool in_pod : {true, false}) {
    MessagePrices prices;
    const decide::Price price = in_pod ? MessagePrices::kShared : MessagePrices::kApart;
    add(prices, 2, 0.01, in_pod, 10);
    add(prices, 4e5, 0.002, in_pod, 5);
    EXPECT_LT(prices.messages_per_byte(0) * 4e5 * price.message, 0.03) << in_pod;
    add(prices, 4e5, 0.002, in_pod, 50);
    EXPECT_NEAR(prices.messages_per_byte(0) * 4e5 * price.message + 4e5 * price.byte, 0.002, 0.0002) << in_pod;
  }
}

TEST(MessagePrices, LongMessagesAreBytesOnly) {
  MessagePrices prices;
  add(prices, 1e8, 1e8 * MessagePrices::kShared.byte * 0.8, true);
  EXPECT_EQ(prices.messages_per_byte(0), 0);
  add(prices, 1e8, 1e8 * MessagePrices::kApart.byte * 1.5, false);
  EXPECT_TRUE(prices.learned().empty()) << "it is said of no message";
}

TEST(MessagePrices, WhatCanNotBeMeasuredChangesNothing) {
  MessagePrices prices;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  for (const double bytes : {0.0, -1.0, kNaN, kInf}) add(prices, bytes, 1, true);
  for (const double seconds : {kNaN, kInf}) add(prices, 1e6, seconds, true);
  EXPECT_EQ(prices.messages_per_byte(0), 0);
  const std::vector<decide::Partner> half{{{1}, 1}, {{2}, 1}};
  for (int t = 0; t < 9; ++t) prices.add(heard(kBytes, 1), {"s"}, {"s", "s", "s"}, {"a", "a", "b"}, {half, {}, {}});
  prices.add(heard(kBytes, 1), {"s"}, {"s", "s"}, {"a"}, {half, {}});
  EXPECT_EQ(prices.messages_per_byte(0), 0);
  add(prices, kBytes, in_pod(), true);
  add(prices, kBytes, 1e9, false);
  EXPECT_EQ(prices.apart("s").message, MessagePrices::kMost);
}

TEST(MessagePrices, AreKeptInTheJobsStatus) {
  Yardstick yardstick({{"messagePrice", "s", "", 23e-6, "s", crds::CalibrationSource::kMeasured, 1}}, {}, {}, 2);
  const std::vector<NodeFacts> nodes{{.name = "n", .set = "s", .slots = 2}};
  EXPECT_TRUE(yardstick.platform({"s"}, nodes, {"s", "s"}).shared.empty()) << "each rank has its own pod";
  const decide::Platform platform = yardstick.platform({"s"}, nodes, {"s", "s"}, true);
  ASSERT_EQ(platform.apart.size(), 1u);
  EXPECT_EQ(platform.apart[0].message, 23e-6);
  EXPECT_EQ(platform.shared[0], MessagePrices::kShared);
  const auto values = yardstick.to_status(nodes, {"s", "s"});
  const auto entry = std::ranges::find(values, "messagePrice", &crds::CalibrationEntry::name);
  ASSERT_NE(entry, values.end());
  EXPECT_EQ(entry->value, 23e-6);
  EXPECT_EQ(entry->set, "s");
}

}  // namespace
}  // namespace bsp::observe
