#include "operator/decide/auto/packing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace bsp::decide {
namespace {

// The ranks that go to slots of one kind, and those slots, by node.
struct Kind {
  std::vector<std::uint32_t> ranks{};
  std::map<std::uint32_t, std::vector<ProcessorId>> slots{};
};

class Packing {
 public:
  static constexpr std::size_t kMost = 64;  // ranks: a call packs hundreds of mappings, each in the square of them

  Packing(const Case& c, const Heard& heard, std::span<const ProcessorId> mapping)
      : c_(c), heard_(heard), on_(mapping.begin(), mapping.end()) {}

  std::vector<ProcessorId> run() {
    std::map<std::pair<std::uint32_t, double>, Kind> kinds;
    const auto kind_of = [&](std::uint32_t p) { return std::pair(c_.columns.set[p].value, c_.columns.available[p]); };
    for (std::uint32_t i = 0; i < on_.size(); ++i)
      if (on_[i] != c_.columns.on[i] && is_free(on_[i].value)) kinds[kind_of(on_[i].value)].ranks.push_back(i);
    for (std::uint32_t p = 0; p < c_.columns.set.size(); ++p)
      if (const auto kind = kinds.find(kind_of(p)); is_free(p) && kind != kinds.end())
        kind->second.slots[heard_.pods().node()[p]].push_back({p});
    for (auto& [speed, kind] : kinds)
      if (kind.ranks.size() > 1 && kind.ranks.size() <= kMost) pack(kind);
    return std::move(on_);
  }

 private:
  [[nodiscard]] bool is_free(std::uint32_t p) const { return c_.columns.slots[p] == 1 && c_.columns.held[p] == 0; }
  [[nodiscard]] bool may_be_on(std::uint32_t i, ProcessorId p) const {
    const std::span<const std::uint32_t> node = heard_.pods().node();
    if (node[p.value] == node[c_.columns.on[i].value]) return false;
    return c_.columns.special[i] == 0 || c_.snapshot.may_go_to({i}, p, c_.columns.set[p.value]);
  }
  [[nodiscard]] double heard_more(std::uint32_t i, std::uint32_t k, std::uint32_t j) const {
    double seconds = 0;
    for (const Partner& from : heard_.partners(i))
      if (from.rank.value == k) seconds += heard_.seconds_of(from, j, j, false) - heard_.seconds_of(from, j, j, true);
    return seconds;
  }

  // Everyone in a slot where it may be, or all as they were.
  void pack(Kind& kind) {
    const std::vector<ProcessorId> before = on_;
    const std::uint32_t j = c_.columns.set[on_[kind.ranks.front()].value].value;
    const std::size_t n = kind.ranks.size();
    Grid<double> talk(n, n);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < a; ++b)
        talk[a, b] = talk[b, a] =
            heard_more(kind.ranks[a], kind.ranks[b], j) + heard_more(kind.ranks[b], kind.ranks[a], j);
    std::vector<bool> placed(n, false);
    const auto put = [&](std::size_t a, std::vector<ProcessorId>& slots) {
      const auto slot = std::ranges::find_if(slots, [&](ProcessorId p) { return may_be_on(kind.ranks[a], p); });
      if (slot == slots.end()) return false;
      on_[kind.ranks[a]] = *slot;
      slots.erase(slot);
      placed[a] = true;
      return true;
    };
    for (;;) {
      auto& slots = std::ranges::max_element(kind.slots, {}, [](const auto& of) { return of.second.size(); })->second;
      std::pair<std::size_t, std::size_t> two;
      double most = 0;
      for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < a; ++b)
          if (!placed[a] && !placed[b] && talk[a, b] > most) most = talk[a, b], two = {a, b};
      if (!(most > 0) || slots.size() < 2) break;
      std::vector<std::size_t> here;
      const auto add = [&](std::size_t a) {
        if (!put(a, slots)) return false;
        here.push_back(a);
        return true;
      };
      if (!add(two.first) || !add(two.second)) return restore(before);
      while (!slots.empty()) {
        std::size_t next = n;
        double heaviest = 0;
        for (std::size_t a = 0; a < n; ++a) {
          double sum = 0;
          for (const std::size_t b : here) sum += talk[a, b];
          if (!placed[a] && sum > heaviest) heaviest = sum, next = a;
        }
        if (next == n || !add(next)) break;
      }
    }
    for (std::size_t a = 0; a < n; ++a)
      if (!placed[a] && std::ranges::none_of(kind.slots, [&](auto& of) { return put(a, of.second); }))
        return restore(before);
  }
  void restore(const std::vector<ProcessorId>& before) { on_ = before; }

  const Case& c_;
  const Heard& heard_;
  std::vector<ProcessorId> on_;
};

}  // namespace

std::optional<std::vector<ProcessorId>> packed(const Case& c, const Heard& heard,
                                               std::span<const ProcessorId> mapping) {
  std::vector<ProcessorId> on = Packing(c, heard, mapping).run();
  if (std::ranges::equal(on, mapping)) return std::nullopt;
  return on;
}

}  // namespace bsp::decide
