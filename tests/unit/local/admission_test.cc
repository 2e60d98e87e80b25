// What may change of a job while it exists: the same as in a cluster.
#include "operator/local/cli/admission.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace bsp::local {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json a_job() {
  return json::parse(R"({"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob",
    "metadata": {"name": "weather", "namespace": "default"},
    "spec": {"ranks": 2, "template": {"spec": {"containers": [{"name": "app", "image": "weather:1"}]}}}})");
}

Result<kube::Object> changed(const char* field, json value) {
  const auto stored = admit(a_job(), nullptr);
  EXPECT_TRUE(stored) << stored.error().message;
  json next = *stored;
  next["spec"][json::json_pointer(field)] = std::move(value);
  return admit(next, &*stored);
}

TEST(Admission, TheObjectiveMayChangeWhileTheJobRuns) {
  for (const json& objective : {json{{"type", "Price"}}, json{{"type", "Price"}, {"maxSlowdown", 0.3}}}) {
    const auto result = changed("/objective", objective);
    EXPECT_TRUE(result) << result.error().message;
  }
  EXPECT_TRUE(changed("/rescheduling/expectedSupersteps", 1000));
}

TEST(Admission, WhatTheJobBeganWithStays) {
  const auto ranks = changed("/ranks", 3);
  ASSERT_FALSE(ranks);
  EXPECT_THAT(ranks.error().message, HasSubstr("spec.ranks: can't be changed"));
  EXPECT_FALSE(changed("/rescheduling/heuristic", "Top"));
  EXPECT_FALSE(changed("/objective", json{{"type", "Cheap"}}));
}

}  // namespace
}  // namespace bsp::local
