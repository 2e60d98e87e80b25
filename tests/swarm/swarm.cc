#include "tests/swarm/swarm.h"

#include <algorithm>
#include <format>

namespace bsp::simulation {

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::kProgramDies:
      return "program dies";
    case Fault::kForceDelete:
      return "pod deleted by force";
    case Fault::kDelete:
      return "pod deleted";
    case Fault::kNodeCut:
      return "node cut off";
    case Fault::kSidecarRestarts:
      return "sidecar restarts";
    case Fault::kSidecarDiskFull:
      return "sidecar's disk full";
    case Fault::kCopyDies:
      return "copy dies";
    case Fault::kCriuFails:
      return "criu fails";
    case Fault::kStorageFails:
      return "storage fails";
    case Fault::kOperatorDies:
      return "operator dies";
    case Fault::kOperatorSleeps:
      return "operator sleeps";
    case Fault::kOperatorCutOff:
      return "operator cut off";
    case Fault::kApiSilent:
      return "API server silent";
    case Fault::kWatchStalls:
      return "watch stalls";
    case Fault::kUnreadable:
      return "job unreadable";
    case Fault::kCancelled:
      return "move cancelled";
    case Fault::kCordon:
      return "node cordoned";
    case Fault::kKubeletHangs:
      return "kubelet hangs";
    case Fault::kStoreRestored:
      return "store restored";
  }
  return "";
}

namespace {
template <class T>
T one_of(std::mt19937_64& random, std::initializer_list<T> values) {
  return *(values.begin() + std::uniform_int_distribution<std::ptrdiff_t>(0, std::ssize(values) - 1)(random));
}
}  // namespace

Swarm::Swarm(std::uint64_t with_seed) : seed(with_seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ull + 1);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  const auto coin = [&](double p) { return std::bernoulli_distribution(p)(random); };
  const int size = draw(0, 99);
  ranks = static_cast<std::uint32_t>(size < 75 ? draw(2, 4) : size < 95 ? draw(5, 9) : draw(10, 20));
  seats = coin(0.6) ? 1 : static_cast<std::uint32_t>(draw(2, 4));
  slots = seats * static_cast<std::uint32_t>(draw(1, 2));
  const auto nodes = static_cast<int>((ranks + slots - 1) / slots);
  slow = static_cast<std::uint32_t>(nodes + draw(0, 1));
  fast = static_cast<std::uint32_t>(std::max(1, nodes - draw(0, 1)));
  operators = one_of(random, {1, 1, 2, 3});
  supersteps = static_cast<std::uint64_t>(draw(40, 250));
  traps_sigterm = coin(0.3);
  checkpoints = coin(0.25);
  old_sidecars = coin(0.1);
  forgetful = coin(0.1);
  if (coin(0.6) && !old_sidecars) late = one_of(random, {0.002, 0.02, 0.1}), late_by = one_of(random, {5, 30, 80, 300});
  if (coin(0.4)) loss = one_of(random, {0.001, 0.01, 0.05});
  if (coin(0.3)) write_loss = one_of(random, {0.005, 0.05});
  watch_lag = one_of(random, {0, 0, 1, 3, 10});
  if (coin(0.4) && !old_sidecars) again = one_of(random, {0.002, 0.02, 0.1});
  moves = one_of(random, {0.005, 0.02, 0.05});
  faults = one_of(random, {0.0, 0.005, 0.02, 0.05});
  faults_until = draw(100, 400);
  const bool harmless = coin(0.5);
  const double share = one_of(random, {0.1, 0.3, 0.6});
  for (int kind = harmless ? static_cast<int>(Fault::kSidecarRestarts) : 0;
       kind < static_cast<int>(Fault::kKubeletHangs); ++kind)
    if (coin(share)) kinds.insert(static_cast<Fault>(kind));
  // In supersteps that are long, what is late finds its superstep still to come.
  if (coin(0.4)) {
    superstep_low = one_of(random, {5, 20}), superstep_high = 6 * superstep_low;
    supersteps = static_cast<std::uint64_t>(draw(10, 40));
  }
  // A copy that comes soon finds the next attempt of its gate.
  if (coin(0.5)) again_by = one_of(random, {20, 60, 200});
  if (operators > 1 && coin(0.3)) releases = 2;
  if (!harmless && coin(0.2)) kinds.insert(Fault::kKubeletHangs);
  if (!harmless && coin(0.2)) kinds.insert(Fault::kStoreRestored);
}

bool Swarm::is_harmless() const {
  return std::ranges::none_of(
      kinds, [](Fault fault) { return fault < Fault::kSidecarRestarts || fault >= Fault::kKubeletHangs; });
}

std::string Swarm::text() const {
  std::string text = std::format(
      "seed {}: {} ranks, {} a pod, {} slots on each of {} slow and {} fast nodes, {} operators of {} releases, {} "
      "supersteps of {} to {}{}{}{}{}; "
      "late {} by {}, again {} by {}, lost {}, writes {}, watch {}; moves {}, faults {} until {}:",
      seed, ranks, seats, slots, slow, fast, operators, releases, supersteps, superstep_low, superstep_high,
      traps_sigterm ? ", traps SIGTERM" : "", checkpoints ? ", checkpoints" : "", old_sidecars ? ", old sidecars" : "",
      forgetful ? ", forgetful sidecars" : "", late, late_by, again, again_by, loss, write_loss, watch_lag, moves,
      faults, faults_until);
  for (const Fault kind : kinds) text += std::format(" {};", to_string(kind));
  return text;
}

}  // namespace bsp::simulation
