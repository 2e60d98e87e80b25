#include "operator/decide/papers/levels.h"

#include <algorithm>

namespace bsp::decide {
namespace {

// In the list's order, and so read from front to back as the levels are made.
struct CommOfList {
  std::vector<double> here, there;  // [q] Comm(i,·) of the rank in its own Set and in its target
  std::vector<double> rest;         // [q] max Comm(i,·) of the ranks from position q on, and of those not in the list
};

CommOfList comm_of_list(const Case& c, std::span<const PmEntry> list, std::span<const double> here,
                        const CommTimes& comm_of) {
  // By rank: visited in that order, in which memory has their bytes.
  std::vector<SetId> target = c.columns.own;
  for (const PmEntry& e : list) target[e.rank.value] = e.target;
  std::vector<double> there(here.size());
  CommOfList of{std::vector<double>(list.size()), std::vector<double>(list.size()),
                std::vector<double>(list.size() + 1, 0.0)};
  for (std::uint32_t i = 0; i < there.size(); ++i) {
    const bool listed = target[i] != c.columns.own[i];
    there[i] = listed ? comm_of({i}, target[i]) : 0;
    if (!listed) of.rest.back() = std::max(of.rest.back(), here[i]);
  }
  for (std::size_t q = list.size(); q-- > 0;) {
    const std::uint32_t i = list[q].rank.value;
    of.here[q] = here[i];
    of.there[q] = there[i];
    of.rest[q] = std::max(of.rest[q + 1], here[i]);
  }
  return of;
}

}  // namespace

std::vector<double> comm_here(const Case& c, const CommTimes& comm_of) {
  std::vector<double> here(c.columns.own.size());
  for (std::uint32_t i = 0; i < here.size(); ++i) here[i] = comm_of({i}, c.columns.own[i]);
  return here;
}

Levels make_levels(const Case& c, std::span<const PmEntry> list, std::span<const double> here, const CommTimes& comm_of,
                   Placement& placement) {
  const CommOfList comm = comm_of_list(c, list, here, comm_of);
  double comm_before_q = 0, mem = 0;  // max over the entries passed; max over the moved
  Levels made;
  const auto add_level = [&](RankId rank, std::size_t q) {
    Level l{.level = static_cast<std::uint32_t>(made.moves.size()),
            .rank = rank,
            .time = placement.slowest(),
            .comm = std::max(comm_before_q, comm.rest[q]),
            .mem = mem};
    l.pf = l.time + l.comm + l.mem;
    made.levels.push_back(l);
  };

  made.levels.reserve(list.size() + 1);
  made.moves.reserve(list.size());
  add_level(RankId{}, 0);
  for (std::size_t q = 0; q < list.size(); ++q) {
    placement.expect(list.subspan(q));
    const PmEntry& e = list[q];
    const bool full = c.params.max_moves > 0 && made.moves.size() >= c.params.max_moves;
    const auto pick = full ? std::nullopt : placement.pick(e.target, e.rank);
    if (!pick) {
      const Reason reason = full ? Reason::kMoveLimit : Reason::kNoCapacity;
      made.left_out.push_back({static_cast<std::uint32_t>(q), reason});
      comm_before_q = std::max(comm_before_q, comm.here[q]);
      continue;
    }
    placement.move(e.rank, *pick, e.target);
    comm_before_q = std::max(comm_before_q, comm.there[q]);
    mem = std::max(mem, e.mem);
    made.moves.push_back({static_cast<std::uint32_t>(q), pick->processor});
    add_level(e.rank, q + 1);
  }
  return made;
}

}  // namespace bsp::decide
