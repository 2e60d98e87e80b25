// The command line of `bsp-operator simulate`.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/core/error.h"
#include "operator/decide/model/model.h"

namespace bsp::sim {

struct Options {
  std::string job;                               // file of the BSPJob
  std::string platform_file, pools;              // one of them
  std::string application;                       // "NAME[:key=value,…]"
  std::optional<decide::Heuristic> heuristic{};  // instead of the manifest's
  std::map<std::string, double> prices{};        // of a node, an hour, by Set
  std::optional<double> mig_seconds{};           // instead of the platform's
  std::optional<double> call_seconds{};          // instead of the platform's
  std::string timeline;                          // file to write; "": none
  std::string record;                            // file to write; "": none
  bool json = false;
  std::size_t rows = 8;  // rows to print of each table of a decision
};

// kInvalid names the option, the remedy and the usage; --help also prints `applications`.
Result<Options> parse_options(std::span<const std::string> words, const std::string& applications);

}  // namespace bsp::sim
