// What an mpirun command line says about the ranks: Open MPI's options, and those of Hydra (MPICH, Intel MPI).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/error.h"
#include "operator/convert/count.h"
#include "operator/convert/shell.h"
#include "operator/convert/variables.h"

namespace bsp::convert {

struct MpiRun {
  std::optional<Count> ranks;
  std::optional<Count> ranks_per_worker;                         // -npernode N, --map-by ppr:N:node
  std::vector<std::string> exported;                             // -x NAME: from the launcher's environment
  std::vector<std::pair<std::string, std::string>> environment;  // -x NAME=VALUE, --mca PARAMETER VALUE
  std::vector<std::pair<std::string, Word>> assignments;  // those of which only a shell knows the value: NAME=$VALUE
  std::optional<std::uint32_t> hosts, slots;              // of -host a,b:2
  std::string unclear;                                    // what says how many ranks a worker has, but not here
  std::string directory;                                  // --wdir
  std::optional<std::uint32_t> seconds;                   // --timeout
  // Options without a counterpart, and why. Those that change nothing where each rank has a container of its own aren't listed.
  std::vector<std::pair<std::string, std::string>> dropped;
  std::vector<Word> program;
};

[[nodiscard]] bool is_mpirun(const std::string& word);
[[nodiscard]] bool is_hostfile_option(std::string_view word);
// Hydra passes on the whole environment, Open MPI only what -x names.
[[nodiscard]] bool is_hydra(const std::string& word);

// Whether a variable says how processes are started and reach each other, which is the operator's task.
[[nodiscard]] bool is_launch_variable(std::string_view name);

// `words` after mpirun. kInvalid names the option and the remedy.
Result<MpiRun> read_mpirun(std::span<const Word> words, const Variables& variables = {});

}  // namespace bsp::convert
