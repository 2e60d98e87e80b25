// What an mpirun command line says about the ranks: Open MPI's options, and those of Hydra (MPICH, Intel MPI).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/core/error.h"
#include "operator/convert/shell_words.h"

namespace bsp::convert {

struct MpiRun {
  std::optional<std::uint32_t> ranks;
  std::optional<std::uint32_t> ranks_per_worker;                 // -npernode N, --map-by ppr:N:node
  std::vector<std::string> exported;                             // -x NAME: from the launcher's environment
  std::vector<std::pair<std::string, std::string>> environment;  // -x NAME=VALUE, --mca PARAMETER VALUE
  std::string directory;                                         // --wdir
  std::optional<std::uint32_t> seconds;                          // --timeout
  // Options without a counterpart, and why. Those that change nothing where each rank has a pod of its own aren't listed.
  std::vector<std::pair<std::string, std::string>> dropped;
  std::vector<Word> program;
};

[[nodiscard]] bool is_mpirun(const std::string& word);

// `words` after mpirun. kInvalid names the option and the remedy.
Result<MpiRun> read_mpirun(std::span<const Word> words);

}  // namespace bsp::convert
