// The JSON of crds/exchange.h: it round-trips, and errors name the field.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "crds/exchange.h"

namespace bsp::wire {
namespace {

using nlohmann::json;

const ExchangeBatch kBatch{
    .group = "pools-7",
    .generation = 3,
    .from = 1,
    .instance = 77,
    .resources = {"slow", "fast"},
    .number = 12,
    .messages = {{.kind = ExchangeKind::kStart, .id = 3, .decided = 2},
                 {.kind = ExchangeKind::kAnswer, .id = 9, .loads = {0.5, 3}},
                 {.kind = ExchangeKind::kEnd, .decided = 3, .assignments = {{2, 1, 4.25}, {0, 0, -1}}},
                 {.kind = ExchangeKind::kNoMoreMaster}}};

std::string error_of(const json& j) {
  // As parsed from the wire, where whole numbers are unsigned.
  const auto batch = exchange_batch_from_json(json::parse(j.dump()), 3);
  return batch ? "accepted" : batch.error().message;
}

TEST(ExchangeJson, RoundTrips) {
  const auto back = exchange_batch_from_json(json::parse(json(kBatch).dump()), 3);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->group, kBatch.group);
  EXPECT_EQ(back->generation, kBatch.generation);
  EXPECT_EQ(back->resources, kBatch.resources);
  EXPECT_EQ(back->from, kBatch.from);
  EXPECT_EQ(back->instance, kBatch.instance);
  EXPECT_EQ(back->number, kBatch.number);
  EXPECT_EQ(back->messages, kBatch.messages);
}

TEST(ExchangeJson, NamesTheError) {
  const json good = kBatch;
  const auto with = [&](const char* pointer, const json& value) {
    json j = good;
    j[json::json_pointer(pointer)] = value;
    return error_of(j);
  };
  EXPECT_EQ(error_of(good), "accepted");
  EXPECT_EQ(with("/from", 3), "exchange.from is 3; the group has it up to 2 only");
  EXPECT_EQ(with("/from", -1), "exchange.from is not a whole number from 0");
  EXPECT_EQ(with("/number", 0), "exchange.number is missing; messages are counted from 1");
  EXPECT_EQ(with("/group", 7), "exchange.group is missing or not a string");
  EXPECT_EQ(with("/messages", "no"), "exchange.messages is missing or not an array");
  EXPECT_EQ(with("/messages/0", 1), "exchange.messages[0] is not an object");
  EXPECT_EQ(with("/messages/0/kind", "Stop"),
            "exchange.messages[0].kind is no kind of message that this version knows");
  EXPECT_EQ(with("/generation", 0), "exchange.generation is missing; they are counted from 1");
  EXPECT_EQ(with("/resources", 7), "exchange.resources is not an array");
  EXPECT_EQ(with("/resources/1", 7), "exchange.resources has a name that is not a string");
  EXPECT_EQ(with("/messages/1/loads", {1.0}), "accepted") << "it has no load on resources that it learnt of since";
  EXPECT_EQ(with("/messages/1/loads", {1.0, 2.0, 3.0}),
            "exchange.messages[1].loads is not an array of numbers for the 2 resources that have a name");
  EXPECT_EQ(with("/messages/1/loads/0", "x"), "exchange.messages[1].loads is not a finite number");
  EXPECT_EQ(with("/messages/2/assignments/0/to", 3),
            "exchange.messages[2].assignments.to is 3; the group has it up to 2 only");
  EXPECT_EQ(with("/messages/2/assignments/0/resource", 2),
            "exchange.messages[2].assignments.resource is 2; only 2 resources have a name");
  EXPECT_EQ(with("/messages/2/assignments/0/amount", nullptr),
            "exchange.messages[2].assignments.amount is not a finite number");
  json without = good;
  without["messages"][1].erase("loads");
  EXPECT_EQ(error_of(without), "exchange.messages[1].loads is missing");
  EXPECT_EQ(error_of(json::array()), "exchange. is not an object");
}

}  // namespace
}  // namespace bsp::wire
