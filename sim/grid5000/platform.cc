#include "sim/grid5000/platform.h"

namespace bsp::sim::grid5000 {
namespace {

constexpr std::uint32_t kCapricorne = 0, kSuno = 1;

// Links between the sites' gateways: Lyon–Marseille–Sophia, Lyon–Paris–Lille, Sophia–Marseille–Lyon–Paris–Lille.
constexpr std::uint32_t kBackbone[kSites][kSites] = {{0, 2, 2}, {2, 0, 4}, {2, 4, 0}};

struct Part {  // machines first to last of a site, from 1
  std::uint32_t site, first, last;
};

std::vector<Machine> machines(std::initializer_list<Part> parts) {
  std::vector<Machine> on;
  for (const Part& part : parts)
    for (std::uint32_t m = part.first; m <= part.last; ++m) on.push_back({part.site, m - 1});
  return on;
}

std::vector<Machine> cyclic(std::uint32_t site, std::uint32_t processes, std::uint32_t machines) {
  std::vector<Machine> on;
  for (std::uint32_t i = 0; i < processes; ++i) on.push_back({site, i % machines});
  return on;
}

std::vector<Machine> joined(std::vector<Machine> first, const std::vector<Machine>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

// Two of Capricorne and one of Suno in turn, until the 37 of Capricorne's ten machines and the 23 of Suno are placed.
std::vector<Machine> in_turn() {
  std::vector<Machine> on;
  const std::vector<Machine> suno = cyclic(kSuno, 23, 15);
  for (std::uint32_t k = 0, c = 0; k < suno.size(); ++k) {
    const std::uint32_t pair = k < 17 ? 2 : k < 20 ? 1 : 0;
    for (std::uint32_t n = 0; n < pair; ++n) on.push_back({kCapricorne, c % 10});
    if (pair > 0) ++c;
    on.push_back(suno[k]);
  }
  return on;
}

}  // namespace

double latency(Machine from, Machine to) {
  // A machine's link, its site's switch, the site's two links outwards; and the same at the other end.
  const std::uint32_t links = from.site == to.site ? 3 : 8 + kBackbone[from.site][to.site];
  return links * kLatency;
}

Deployment deployment(decide::Mapping mapping) {
  const std::vector<Machine> capricorne = cyclic(kCapricorne, 37, 10), suno = cyclic(kSuno, 23, 15);
  switch (mapping) {
    case decide::Mapping::kDescending:
      return {joined(suno, capricorne), {15, 15, 10}};
    case decide::Mapping::kRoundRobin:
      return {in_turn(), {15, 15, 10}};
    case decide::Mapping::kCpu:
      return {machines({{kCapricorne, 1, 10},
                        {kCapricorne, 1, 10},
                        {kSuno, 1, 5},
                        {kCapricorne, 6, 10},
                        {kSuno, 1, 5},
                        {kSuno, 1, 8},
                        {kCapricorne, 1, 10},
                        {kCapricorne, 1, 7}}),
              {10, 10, 10}};
    default:
      return {joined(capricorne, suno), {15, 15, 10}};
  }
}

}  // namespace bsp::sim::grid5000
