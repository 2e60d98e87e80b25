// Values of every type, and every place of a JSON document to put them.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/core/guard.h"

namespace bsp::reconcile::hostile {

using nlohmann::json;

inline const std::vector<json>& values() {
  static const std::vector<json> all = {nullptr,
                                        "text",
                                        "",
                                        5,
                                        -1,
                                        0,
                                        1.5,
                                        1e300,
                                        std::uint64_t{18446744073709551615u},
                                        true,
                                        json::array(),
                                        json::object(),
                                        json::array({nullptr}),
                                        json::array({"x"}),
                                        json::array({json::object()}),
                                        json::array({json::array()}),
                                        {{"a", nullptr}},
                                        {{"name", 5}}};
  return all;
}

// Of every value in it, from the root on.
inline void collect(const json& value, const json::json_pointer& at, std::vector<json::json_pointer>& paths) {
  paths.push_back(at);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, paths);
  if (value.is_object())
    for (const auto& [name, member] : value.items()) collect(member, at / name, paths);
}
inline std::vector<json::json_pointer> paths_of(const json& value) {
  std::vector<json::json_pointer> paths;
  collect(value, json::json_pointer(), paths);
  return paths;
}

// Calls use() with each value at each place.
template <class Use>
void at_every_place(const json& good, const Use& use) {
  for (const auto& path : paths_of(good))
    for (const json& value : values()) {
      json changed = good;
      changed[path] = value;
      const auto done = guarded([&] { use(changed, path); });
      EXPECT_TRUE(done) << path.to_string() << " = " << value << ": " << (done ? "" : done.error().message);
    }
}

}  // namespace bsp::reconcile::hostile
