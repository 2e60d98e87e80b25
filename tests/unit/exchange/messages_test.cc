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
  EXPECT_EQ(with("/from", 3), "exchange.from: is 3, but the last member is 2");
  EXPECT_EQ(with("/from", -1), "exchange.from: must not be negative, but is -1");
  EXPECT_EQ(with("/number", 0), "exchange.number: must be at least 1");
  EXPECT_EQ(with("/group", 7), "exchange.group: must be a string, not a number");
  EXPECT_EQ(with("/messages", "no"), "exchange.messages: must be a list, not a string");
  EXPECT_EQ(with("/messages/0", 1), "exchange.messages[0]: must be an object, not a number");
  EXPECT_EQ(with("/messages/0/kind", "Stop"),
            "exchange.messages[0].kind: \"Stop\" is not one of the allowed values; known: Hello, Load, Reserve, "
            "NoMoreMaster, Start, Answer, End");
  EXPECT_EQ(with("/generation", 0), "exchange.generation: must be at least 1");
  EXPECT_EQ(with("/generation", nullptr), "exchange.generation: is required");
  EXPECT_EQ(with("/resources", 7), "exchange.resources: must be a list, not a number");
  EXPECT_EQ(with("/resources/1", 7), "exchange.resources[1]: must be a string, not a number");
  EXPECT_EQ(with("/messages/1/loads", {1.0}), "accepted") << "it has no load on resources that it learnt of since";
  EXPECT_EQ(with("/messages/1/loads", {1.0, 2.0, 3.0}),
            "exchange.messages[1].loads: has 3 loads, but only 2 resources have a name");
  EXPECT_EQ(with("/messages/1/loads/0", "x"), "exchange.messages[1].loads[0]: must be a number, not a string");
  EXPECT_EQ(with("/messages/2/assignments/0/to", 3),
            "exchange.messages[2].assignments[0].to: is 3, but the last member is 2");
  EXPECT_EQ(with("/messages/2/assignments/0/resource", 2),
            "exchange.messages[2].assignments[0].resource: is 2, but only 2 resources have a name");
  EXPECT_EQ(with("/messages/2/assignments/0/amount", "x"),
            "exchange.messages[2].assignments[0].amount: must be a number, not a string");
  EXPECT_EQ(with("/messages/2/assignments/0/amount", nullptr),
            "exchange.messages[2].assignments[0].amount: is required");
  json without = good;
  without["messages"][1].erase("loads");
  EXPECT_EQ(error_of(without), "exchange.messages[1].loads: is required");
  EXPECT_EQ(error_of(json::array()), "exchange: must be an object, not a list");
}

}  // namespace
}  // namespace bsp::wire
