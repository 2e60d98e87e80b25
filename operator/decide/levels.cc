#include "operator/decide/levels.h"

#include <algorithm>

#include "operator/decide/pf.h"

namespace bsp::decide {
namespace {

// rest[q] = max Comm(i,·) of the ranks that are in the list from position q on, or not in it at all.
std::vector<double> comm_of_the_rest(std::span<const PmEntry> list, const CommTimes& comm) {
  std::vector<bool> listed(comm.here.size(), false);
  for (const PmEntry& e : list) listed[e.rank.value] = true;
  std::vector<double> rest(list.size() + 1, 0.0);
  for (std::size_t i = 0; i < listed.size(); ++i)
    if (!listed[i]) rest.back() = std::max(rest.back(), comm.here[i]);
  for (std::size_t q = list.size(); q-- > 0;)
    rest[q] = std::max(rest[q + 1], comm.here[list[q].rank.value]);
  return rest;
}

}  // namespace

CommTimes comm_times(const Case& c, std::span<const PmEntry> list) {
  const Grid<double> T_to = transposed(c.snapshot.platform.T);
  const Grid<double>& Bytes = c.metrics.last.recv_bytes;
  std::vector<SetId> target;
  const std::size_t n = c.snapshot.ranks.size();
  target.reserve(n);
  for (std::uint32_t i = 0; i < n; ++i) target.push_back(c.snapshot.set(RankId{i}));
  for (const PmEntry& e : list) target[e.rank.value] = e.target;
  CommTimes comm{std::vector<double>(n), std::vector<double>(n)};
  for (std::uint32_t i = 0; i < n; ++i) {  // in rank order: Bytes is read once, from front to back
    const SetId own = c.snapshot.set(RankId{i});
    comm.here[i] = Comm(Bytes.row(i), T_to.row(own.value));
    comm.there[i] = target[i] == own ? comm.here[i] : Comm(Bytes.row(i), T_to.row(target[i].value));
  }
  return comm;
}

Levels make_levels(const Case& c, std::span<const PmEntry> list, const CommTimes& comm, Processors& processors) {
  const std::vector<double> rest = comm_of_the_rest(list, comm);
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
      made.left_out.push_back({.rank = e.rank, .reason = reason, .target = e.target});
      comm_before_q = std::max(comm_before_q, comm.here[e.rank.value]);
      continue;
    }
    processors.move(e.rank, pick->processor);
    comm_before_q = std::max(comm_before_q, comm.there[e.rank.value]);
    mem = std::max(mem, e.mem);
    made.moves.push_back({static_cast<std::uint32_t>(q), pick->processor});
    add_level(e.rank, q + 1);
  }
  return made;
}

}  // namespace bsp::decide
