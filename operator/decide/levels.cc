#include "operator/decide/levels.h"

#include <algorithm>

namespace bsp::decide {
namespace {

// rest[q] = max Comm(i,·) of the ranks that are in the list from position q on, or not in it at all.
std::vector<double> comm_of_the_rest(std::span<const PmEntry> list, std::span<const double> here) {
  std::vector<std::uint8_t> listed(here.size(), 0);
  for (const PmEntry& e : list) listed[e.rank.value] = 1;
  std::vector<double> rest(list.size() + 1, 0.0);
  for (std::size_t i = 0; i < listed.size(); ++i)
    if (listed[i] == 0) rest.back() = std::max(rest.back(), here[i]);
  for (std::size_t q = list.size(); q-- > 0;) rest[q] = std::max(rest[q + 1], here[list[q].rank.value]);
  return rest;
}

// Comm(i,·) of the ranks of the list in their targets, by rank: visited in that order, in which memory has their bytes.
std::vector<double> comm_there(const Case& c, std::span<const PmEntry> list, const CommOf& comm_of) {
  std::vector<SetId> target = c.columns.own;
  for (const PmEntry& e : list) target[e.rank.value] = e.target;
  std::vector<double> there(target.size());
  for (std::uint32_t i = 0; i < there.size(); ++i) there[i] = comm_of({i}, target[i]);
  return there;
}

}  // namespace

std::vector<double> comm_here(const Case& c, const CommOf& comm_of) {
  std::vector<double> here(c.columns.own.size());
  for (std::uint32_t i = 0; i < here.size(); ++i) here[i] = comm_of({i}, c.columns.own[i]);
  return here;
}

Levels make_levels(const Case& c, std::span<const PmEntry> list, std::span<const double> here, const CommOf& comm_of,
                   Processors& processors) {
  const std::vector<double> rest = comm_of_the_rest(list, here), there = comm_there(c, list, comm_of);
  double comm_before_q = 0, mem = 0;  // max over the entries passed; max over the moved
  Levels made;
  const auto add_level = [&](RankId rank, std::size_t q) {
    Level l{.level = static_cast<std::uint32_t>(made.moves.size()),
            .rank = rank,
            .time = processors.slowest(),
            .comm = std::max(comm_before_q, rest[q]),
            .mem = mem};
    l.pf = l.time + l.comm + l.mem;
    made.levels.push_back(l);
  };

  made.levels.reserve(list.size() + 1);
  made.moves.reserve(list.size());
  add_level(RankId{}, 0);
  for (std::size_t q = 0; q < list.size(); ++q) {
    const PmEntry& e = list[q];
    const bool full = c.params.max_moves > 0 && made.moves.size() >= c.params.max_moves;
    const auto pick = full ? std::nullopt : processors.pick(e.target, e.rank);
    if (!pick) {
      const Reason reason = full ? Reason::kMoveLimit : Reason::kNoCapacity;
      made.left_out.push_back({static_cast<std::uint32_t>(q), reason});
      comm_before_q = std::max(comm_before_q, here[e.rank.value]);
      continue;
    }
    constexpr std::size_t kAhead = 8;
    if (q + kAhead < list.size()) processors.announce(list[q + kAhead].rank);
    processors.move(e.rank, pick->processor);
    comm_before_q = std::max(comm_before_q, there[e.rank.value]);
    mem = std::max(mem, e.mem);
    made.moves.push_back({static_cast<std::uint32_t>(q), pick->processor});
    add_level(e.rank, q + 1);
  }
  return made;
}

}  // namespace bsp::decide
