#include "operator/decide/model/columns.h"

#include <algorithm>
#include <cmath>
#include <format>

namespace bsp::decide {
namespace {

bool is_cost(double v) { return std::isfinite(v) && v >= 0; }

bool fits(const Platform& platform, const Processor& p) {
  return p.set.value < platform.sets.size() && std::isfinite(p.cpu) && p.cpu > 0 && p.load >= 0 && p.load < 1 &&
         is_cost(p.price);
}

std::unexpected<Error> what_does_not_fit(const Platform& platform, const Processor& p) {
  if (p.set.value >= platform.sets.size())
    return fail(ErrorCode::kInvalid, std::format("processor {} is in no Set of the platform", p.name));
  if (!(std::isfinite(p.cpu) && p.cpu > 0))
    return fail(ErrorCode::kInvalid,
                std::format("processor {}: cpu must be above 0 instructions/s, is {}", p.name, p.cpu));
  if (!is_cost(p.price))
    return fail(ErrorCode::kInvalid, std::format("processor {}: price must be at least 0, is {}", p.name, p.price));
  return fail(ErrorCode::kInvalid,
              std::format("processor {}: load must be at least 0 and below 1, is {}", p.name, p.load));
}

// Each of them another rank, once, and not too many.
bool are_partners(std::span<const Partner> partners, std::size_t i, std::size_t ranks) {
  if (partners.size() > kMostPartners) return false;
  for (std::size_t k = 0; k < partners.size(); ++k) {
    const auto& [rank, bytes, messages] = partners[k];
    if (rank.value >= ranks || rank.value == i || !is_cost(bytes) || !is_cost(messages)) return false;
    if (std::ranges::contains(partners.first(k), rank, &Partner::rank)) return false;
  }
  return true;
}

bool fits(const Platform& platform, const Rank& rank) {
  return rank.processor.value < platform.processors.size() && is_cost(rank.memory_bytes) &&
         std::ranges::all_of(rank.no_moves_to, [&](SetId j) { return j.value < platform.sets.size(); });
}

std::unexpected<Error> what_does_not_fit(const Platform& platform, std::size_t i, const Rank& rank) {
  if (rank.processor.value >= platform.processors.size())
    return fail(ErrorCode::kInvalid, std::format("rank {} is on no processor of the platform", i));
  if (!is_cost(rank.memory_bytes))
    return fail(ErrorCode::kInvalid,
                std::format("rank {}: memory_bytes must be at least 0, is {}", i, rank.memory_bytes));
  const auto j = std::ranges::find_if(rank.no_moves_to, [&](SetId s) { return s.value >= platform.sets.size(); });
  return fail(ErrorCode::kInvalid,
              std::format("rank {} is not to be moved to Set {}, which does not exist", i, j->value));
}

Result<void> validate_prices(const Platform& platform) {
  if (platform.shared.empty() && platform.apart.empty()) return {};
  const auto are_prices = [](const Price& price) { return is_cost(price.byte) && is_cost(price.message); };
  for (const auto& [name, prices] : {std::pair{"shared", &platform.shared}, {"apart", &platform.apart}}) {
    if (prices->size() != platform.sets.size())
      return fail(ErrorCode::kInvalid, std::format("{} has prices of {} Sets, but there are {}", name, prices->size(),
                                                   platform.sets.size()));
    if (const auto bad = std::ranges::find_if_not(*prices, are_prices); bad != prices->end())
      return fail(ErrorCode::kInvalid,
                  std::format("{} of Set {} has a negative or infinite price", name,
                              platform.sets[static_cast<std::size_t>(bad - prices->begin())].name));
  }
  return {};
}

Result<void> validate_costs(const Snapshot& snapshot) {
  const Platform& platform = snapshot.platform;
  const std::size_t sets = platform.sets.size();
  if (platform.T.rows() != sets || platform.T.cols() != sets)
    return fail(ErrorCode::kInvalid,
                std::format("T is {}x{}, but there are {} Sets", platform.T.rows(), platform.T.cols(), sets));
  const std::size_t rows = platform.Mig.rows();
  if (platform.Mig.cols() != sets || (rows != 1 && rows != snapshot.ranks.size()))
    return fail(ErrorCode::kInvalid, std::format("Mig is {}x{}, but there are {} ranks and {} Sets", rows,
                                                 platform.Mig.cols(), snapshot.ranks.size(), sets));
  for (std::size_t a = 0; a < sets; ++a)
    if (!std::ranges::all_of(platform.T.row(a), is_cost))
      return fail(ErrorCode::kInvalid,
                  std::format("T from Set {} has a negative or infinite entry", platform.sets[a].name));
  for (std::size_t i = 0; i < rows; ++i)
    if (!std::ranges::all_of(platform.Mig.row(i), is_cost))
      return fail(ErrorCode::kInvalid, std::format("Mig row {} has a negative or infinite entry", i));
  const auto same_shape = [](const Grid<Origin>& origin, const Grid<double>& values) {
    return origin.empty() || (origin.rows() == values.rows() && origin.cols() == values.cols());
  };
  if (!same_shape(platform.T_origin, platform.T) || !same_shape(platform.Mig_origin, platform.Mig))
    return fail(ErrorCode::kInvalid, "the origins of T or Mig do not have the shape of T or Mig");
  if (const Grid<double>& C = platform.capacity; !C.empty()) {
    if (C.rows() != sets || C.cols() != sets)
      return fail(ErrorCode::kInvalid,
                  std::format("capacity is {}x{}, but there are {} Sets", C.rows(), C.cols(), sets));
    for (std::size_t a = 0; a < sets; ++a)
      if (!std::ranges::all_of(C.row(a), is_cost))
        return fail(ErrorCode::kInvalid,
                    std::format("capacity from Set {} has a negative or infinite entry", platform.sets[a].name));
  }
  return validate_prices(platform);
}

}  // namespace

Result<Columns> columns_of(const Snapshot& snapshot) {
  const Platform& platform = snapshot.platform;
  const std::size_t processors = platform.processors.size(), ranks = snapshot.ranks.size();
  Columns c{.sets = platform.sets.size()};
  c.available.resize(processors);
  c.set.resize(processors);
  c.slots.resize(processors);
  c.held.resize(processors);
  for (std::size_t p = 0; p < processors; ++p) {
    const Processor& processor = platform.processors[p];
    if (!fits(platform, processor)) return what_does_not_fit(platform, processor);
    const bool cordoned = processor.cordoned || platform.sets[processor.set.value].cordoned;
    c.priced |= processor.price > 0;
    c.available[p] = processor.available();
    c.set[p] = processor.set;
    c.slots[p] = cordoned ? 0 : free_slots(processor, 0);
  }
  c.on.resize(ranks);
  c.own.resize(ranks);
  c.M.resize(ranks);
  c.special.resize(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    const Rank& rank = snapshot.ranks[i];
    if (!fits(platform, rank)) return what_does_not_fit(platform, i, rank);
    if (!are_partners(rank.partners, i, ranks))
      return fail(
          ErrorCode::kInvalid,
          std::format("rank {} must have at most {} partners, each another one of the {} ranks, once, with bytes "
                      "and messages of at least 0",
                      i, kMostPartners, ranks));
    ++c.held[rank.processor.value];
    c.on[i] = rank.processor;
    c.own[i] = c.set[rank.processor.value];
    c.M[i] = rank.memory_bytes;
    c.special[i] =
        !rank.not_migratable.empty() || rank.last_move.value > 0 || !rank.left.empty() || !rank.no_moves_to.empty();
  }
  BSP_CHECK_OK(validate_costs(snapshot));
  return c;
}

std::uint32_t free_slots(const Processor& p, std::uint32_t held) {
  if (p.slots == 0) return 1u << 31;
  return p.slots > p.taken + held ? p.slots - p.taken - held : 0;
}

}  // namespace bsp::decide
