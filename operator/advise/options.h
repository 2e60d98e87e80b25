// The command line of `bsp-operator advise`.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/model.h"

namespace bsp::advise {

// Replaces a parameter.
using Change = std::function<void(decide::Params&)>;

struct Options {
  std::string file;                           // "-": standard input
  std::vector<decide::Heuristic> heuristics;  // empty: the recorded one
  std::vector<Change> changes;                // of the recorded parameters
  std::map<std::string, double> prices;       // of a slot, an hour, by Set, instead of the recorded ones
  bool json = false;
  bool brief = false;  // no explanations
};

// kInvalid names the option, the remedy and the usage.
Result<Options> parse_options(std::span<const std::string> words);

decide::Params changed(decide::Params recorded, const std::vector<Change>& changes);

}  // namespace bsp::advise
