#include "tests/unit/decide/bound.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "operator/decide/fast/comm_of.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/pm.h"

namespace bsp::decide {
namespace {

constexpr double kUnreachable = std::numeric_limits<double>::infinity();

// What rank i may have from cost `mem` on.
struct Option {
  double mem, time, comm;  // s
};

struct Ground {
  std::vector<bool> movable;        // [i]
  std::vector<double> kept;         // [p] instructions of the ranks on p that may not move
  std::vector<double> fastest;      // [j] s/instruction of the fastest processor with a free slot
  std::vector<std::uint32_t> held;  // [p] ranks
};

bool takes_ranks(const Platform& platform, const Processor& p, std::uint32_t held) {
  return !p.cordoned && !platform.sets[p.set.value].cordoned && free_slots(p, held) > 0;
}

Ground survey(const Case& c) {
  const Platform& platform = c.snapshot.platform;
  Ground ground{.movable = {},
                .kept = std::vector<double>(platform.processors.size(), 0.0),
                .fastest = std::vector<double>(platform.sets.size(), kUnreachable),
                .held = c.columns.held};
  for (std::uint32_t i = 0; i < c.snapshot.ranks.size(); ++i) {
    ground.movable.push_back(!why_blocked(c, {i}, c.snapshot.set({i})));
    if (!ground.movable[i]) ground.kept[c.snapshot.ranks[i].processor.value] += c.metrics.last.instructions[i];
  }
  for (std::size_t p = 0; p < platform.processors.size(); ++p) {
    const Processor& processor = platform.processors[p];
    double& fastest = ground.fastest[processor.set.value];
    // With reuse, any slot of a processor that takes ranks may become free.
    if (takes_ranks(platform, processor, c.params.reuse_vacated_slots ? 0 : ground.held[p]))
      fastest = std::min(fastest, 1 / processor.available());
  }
  return ground;
}

// By increasing cost; each at least as good as those before, in both.
std::vector<Option> options_of(const Case& c, RankId i, const Ground& ground, const Grid<double>& T_to) {
  const Snapshot& s = c.snapshot;
  const Rank& rank = s.ranks[i.value];
  const double I = c.metrics.last.instructions[i.value];
  const auto Comm_in = [&](SetId j) { return Comm(c.metrics.last.recv_bytes, i, T_to.row(j.value)); };
  const SetId own = s.set(i);
  const double with_me = ground.kept[rank.processor.value] + (ground.movable[i.value] ? I : 0);
  std::vector<Option> options{{0, with_me / s.platform.processor(rank.processor).available(), Comm_in(own)}};
  if (!ground.movable[i.value]) return options;
  for (std::uint32_t j = 0; j < ground.fastest.size(); ++j) {
    const auto& lacking = rank.no_moves_to;
    const bool lacks = std::ranges::find(lacking, SetId{j}) != lacking.end();
    if (lacks || ground.fastest[j] == kUnreachable) continue;
    const double mem = rank.memory_bytes * s.platform.T[own.value, j] + s.platform.Mig_row(i)[j];
    options.push_back({mem, I * ground.fastest[j], Comm_in({j})});
  }
  std::ranges::sort(options, {}, &Option::mem);
  for (std::size_t o = 1; o < options.size(); ++o) {
    options[o].time = std::min(options[o].time, options[o - 1].time);
    options[o].comm = std::min(options[o].comm, options[o - 1].comm);
  }
  return options;
}

// The bounds of Time that the job as a whole has.
double time_of_all(const Case& c, const Ground& ground) {
  const Platform& platform = c.snapshot.platform;
  std::vector<double> I = c.metrics.last.instructions, slots;  // slots: s/instruction of each
  double sum = 0, capacity = 0;
  for (double instructions : I) sum += instructions;
  bool limited = true;
  for (std::size_t p = 0; p < platform.processors.size(); ++p) {
    const Processor& processor = platform.processors[p];
    const bool takes = takes_ranks(platform, processor, ground.held[p]);
    if (takes || ground.held[p] > 0) capacity += processor.available();
    if (takes && processor.slots == 0) limited = false;
    if (processor.slots == 0 && ground.held[p] > 0) limited = false;
    const std::size_t here = !limited ? 0 : ground.held[p] + (takes ? free_slots(processor, ground.held[p]) : 0);
    slots.insert(slots.end(), std::min(here, I.size()), 1 / processor.available());
  }
  double time = capacity > 0 ? sum / capacity : 0;
  if (!limited) return time;
  std::ranges::sort(I, std::greater());
  std::ranges::sort(slots);
  for (std::size_t k = 0; k < std::min(I.size(), slots.size()); ++k) time = std::max(time, I[k] * slots[k]);
  return time;
}

}  // namespace

double objective_lower_bound(const Case& c, double alpha) {
  const Ground ground = survey(c);
  const Grid<double> T_to = transposed(c.snapshot.platform.T);
  // With the cost unlimited every rank has its last option; as the limit falls below an option, the one before it.
  double time = time_of_all(c, ground), comm = 0;
  std::vector<Option> lost;  // mem: the cost that the limit falls below; time, comm: what is left then
  double dearest = 0;
  for (std::uint32_t i = 0; i < c.snapshot.ranks.size(); ++i) {
    const std::vector<Option> options = options_of(c, {i}, ground, T_to);
    time = std::max(time, options.back().time);
    comm = std::max(comm, options.back().comm);
    for (std::size_t o = 1; o < options.size(); ++o)
      lost.push_back({options[o].mem, options[o - 1].time, options[o - 1].comm});
  }
  std::ranges::sort(lost, std::greater(), &Option::mem);
  if (!lost.empty()) dearest = lost.front().mem;
  double least = alpha * (time + comm) + dearest;
  for (std::size_t o = 0; o < lost.size();) {
    const double mem = lost[o].mem;
    for (; o < lost.size() && lost[o].mem == mem; ++o) {
      time = std::max(time, lost[o].time);
      comm = std::max(comm, lost[o].comm);
    }
    least = std::min(least, alpha * (time + comm) + (o < lost.size() ? lost[o].mem : 0));
  }
  return least;
}

}  // namespace bsp::decide
