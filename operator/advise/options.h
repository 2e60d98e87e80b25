// The command line of `bsp-operator advise`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/model.h"

namespace bsp::advise {

// Parameters that replace the recorded ones.
struct Changes {
  std::optional<std::uint64_t> alpha0, omega, cooldown;
  std::optional<std::uint32_t> max_moves;
  std::optional<double> d0, delta, beta, x, min_gain;
  std::optional<decide::Horizon> horizon;
  std::optional<decide::ObjectiveType> objective;
  std::optional<double> max_slowdown;
};

struct Options {
  std::string file;                           // "-": standard input
  std::vector<decide::Heuristic> heuristics;  // empty: the recorded one
  Changes changes;
  bool json = false;
  bool brief = false;  // no explanations
};

// kInvalid names the option, the remedy and the usage.
Result<Options> parse_options(std::span<const std::string> words);

decide::Params changed(decide::Params recorded, const Changes& changes);

}  // namespace bsp::advise
