// The measure taken before parsing: an upper bound for what the parser builds, and exact about depth.
#include "base/json/bounded.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace bsp {
namespace {

using nlohmann::json;

std::size_t values_of(const json& j) {
  std::size_t n = 1;
  if (j.is_structured())
    for (const json& part : j) n += values_of(part);
  return n;
}
std::size_t depth_of(const json& j) {
  std::size_t most = 0;
  if (!j.is_structured()) return 0;
  for (const json& part : j) most = std::max(most, depth_of(part));
  return most + 1;
}

json random_json(std::mt19937& random, int levels) {
  const auto pick = random() % (levels > 0 ? 8 : 5);
  switch (pick) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<std::int64_t>(random()) - 1'000'000'000;
    case 3:
      return "with , [ { \" \\ ] } :";
    case 4:
      return 0.5;
    case 5: {
      json list = json::array();
      for (auto n = random() % 5; n > 0; --n) list.push_back(random_json(random, levels - 1));
      return list;
    }
    default: {
      json object = json::object();
      for (auto n = random() % 5; n > 0; --n)
        object[std::format("\"[{{,{}\\", random() % 100)] = random_json(random, levels - 1);
      return object;
    }
  }
}

TEST(Measure, NeverUnderestimatesTheParsedValue) {
  std::mt19937 random(17);
  for (int i = 0; i < 2000; ++i) {
    const json j = random_json(random, 5);
    const std::string text = j.dump(i % 2 == 0 ? -1 : 1);
    const JsonSize size = measure(text);
    EXPECT_GE(size.values, values_of(j)) << text;
    EXPECT_EQ(size.depth, depth_of(j)) << text;
  }
}

TEST(Measure, AcceptsAnyBytes) {
  std::mt19937 random(18);
  const std::string_view alphabet = "[]{}\",:\\a0 \n\xff";
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (auto n = random() % 64; n > 0; --n) text += alphabet[random() % alphabet.size()];
    const JsonSize size = measure(text);
    EXPECT_LE(size.values, text.size() + 1);
    const json parsed = json::parse(text, nullptr, false);
    EXPECT_TRUE(parsed.is_discarded() || size.values >= values_of(parsed)) << text;
  }
}

TEST(ParseBounded, NamesTheExceededLimit) {
  const JsonLimits limits{.bytes = 100, .values = 10, .depth = 3};
  const auto why = [&](const std::string& text) {
    const auto parsed = parse_bounded(text, limits);
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(why("[0,0,0,0,0,0,0,0,0]"), "");
  EXPECT_EQ(why("[0,0,0,0,0,0,0,0,0,0]"), "JSON has 11 values, more than the limit of 10");
  EXPECT_EQ(why("[[[]]]"), "");
  EXPECT_EQ(why("[[[[]]]]"), "JSON has 4 levels, more than the limit of 3");
  EXPECT_EQ(why("\"" + std::string(100, 'a') + "\""), "JSON has 102 bytes, more than the limit of 100");
  EXPECT_EQ(why("[1"), "not valid JSON");
  EXPECT_EQ(why(""), "not valid JSON");
  EXPECT_EQ(why("1e999"), "not valid JSON");
}

TEST(CutText, CutsAtACharacterBoundary) {
  for (std::size_t most = 0; most < 12; ++most) {
    std::string text = "a\u00e9\u20ac\U0001f600z";
    cut_text(text, most);
    EXPECT_LE(text.size(), most);
    EXPECT_NO_THROW((void)json(text).dump()) << most;
  }
}

}  // namespace
}  // namespace bsp
