#include "operator/local/pools.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>

#include "base/json/fields.h"
#include "crds/names.h"

namespace bsp::local {
namespace {

constexpr unsigned kMaxNodes = 1024, kMaxSlots = 256;

std::unexpected<Error> bad(const std::string& part, const std::string& why) {
  return fail(
      ErrorCode::kInvalid,
      std::format("--pools: \"{}\": {}; write NAME=NODESx[SLOTSx]CPU, for example slow=3x0.25,fast=2x0.6", part, why));
}

Result<Pool> parse_pool(const std::string& part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string::npos) return bad(part, "has no '='");
  const std::string name = part.substr(0, equals);
  const std::string size = part.substr(equals + 1);
  auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (name.size() > 50) return bad(part, "the name must have at most 50 characters");
  if (name.empty() || !std::ranges::all_of(name, good) || name.front() == '-' || name.back() == '-')
    return bad(part, "the name must consist of a-z, 0-9 and '-', and start and end with a letter or digit");
  const std::size_t times = size.find('x'), last = size.rfind('x');
  if (times == std::string::npos) return bad(part, "has no 'x' between the nodes and the CPU share");
  Pool pool{.name = name};
  const auto number = [&](const std::string& digits, unsigned& value) {
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
  };
  const std::string nodes = size.substr(0, times), cpus = size.substr(last + 1);
  if (!number(nodes, pool.nodes)) return bad(part, std::format("\"{}\" is not a number of nodes", nodes));
  if (times != last) {
    const std::string slots = size.substr(times + 1, last - times - 1);
    if (!number(slots, pool.slots)) return bad(part, std::format("\"{}\" is not a number of slots", slots));
  }
  const auto cpu = std::from_chars(cpus.data(), cpus.data() + cpus.size(), pool.cpu);
  if (cpu.ec != std::errc{} || cpu.ptr != cpus.data() + cpus.size() || !std::isfinite(pool.cpu))
    return bad(part, std::format("\"{}\" is not a CPU share", cpus));
  if (pool.nodes < 1 || pool.nodes > kMaxNodes) return bad(part, std::format("a pool has 1 to {} nodes", kMaxNodes));
  if (pool.slots < 1 || pool.slots > kMaxSlots) return bad(part, std::format("a node has 1 to {} slots", kMaxSlots));
  if (pool.cpu < 0.01 || pool.cpu > 64) return bad(part, "the CPU share of a slot must be between 0.01 and 64 cores");
  return pool;
}

}  // namespace

Result<std::vector<Pool>> parse_pools(const std::string& text) {
  std::vector<Pool> pools;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    BSP_TRY(Pool pool, parse_pool(part));
    if (std::ranges::find(pools, pool.name, &Pool::name) != pools.end()) return bad(part, "the name is used twice");
    pools.push_back(std::move(pool));
    begin = end + 1;
  }
  return pools;
}

Result<void> set_prices(const std::map<std::string, double>& prices, std::vector<Pool>& pools) {
  for (const auto& [name, price] : prices) {
    const auto pool = std::ranges::find(pools, name, &Pool::name);
    if (pool == pools.end()) return fail(ErrorCode::kInvalid, std::format("--prices: --pools has no {}", name));
    pool->price = price;
  }
  return {};
}

std::vector<nlohmann::json> nodes_of(const std::vector<Pool>& pools) {
  std::vector<nlohmann::json> nodes;
  for (const Pool& pool : pools) {
    for (unsigned i = 0; i < pool.nodes; ++i) {
      const nlohmann::json capacity = {{"cpu", std::format("{}m", std::lround(pool.cpu * 1000) * pool.slots)},
                                       {"pods", std::to_string(pool.slots)}};
      nodes.push_back({{"apiVersion", "v1"},
                       {"kind", "Node"},
                       {"metadata",
                        {{"name", std::format("{}-{}", pool.name, i)},
                         {"labels", {{names::kLabelSet, pool.name}}},
                         {"annotations", {{names::kAnnotationSpeed, std::format("{}", pool.cpu)}}}}},
                       {"spec", nlohmann::json::object()},
                       {"status",
                        {{"capacity", capacity},
                         {"allocatable", capacity},
                         {"conditions", {{{"type", "Ready"}, {"status", "True"}, {"reason", "PodmanReady"}}}}}}});
      if (pool.price > 0)
        nodes.back()["metadata"]["annotations"][names::kAnnotationPrice] = std::format("{}", pool.price);
    }
  }
  return nodes;
}

double cpu_of(const nlohmann::json& node) {
  const std::string text = text_at(part_at(part_at(node, "metadata"), "annotations"), names::kAnnotationSpeed);
  double cpu = 0;
  std::from_chars(text.data(), text.data() + text.size(), cpu);
  return cpu;
}

}  // namespace bsp::local
