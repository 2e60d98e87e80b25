// The launcher's container: how it starts mpirun, and what mpirun starts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/convert/mpirun.h"
#include "operator/convert/script.h"
#include "operator/convert/source.h"

namespace bsp::convert {

struct Launcher {
  std::string path;  // of the field that holds mpirun
  Launch launch;
  MpiRun run;
  std::vector<std::string> shell;  // that runs mpirun, with the option for a script; empty: none does
};

// `container_path`: for messages. `hosts`: of the hostfile that the MPI operator writes. `run`: which of the script's mpiruns, from 0.
Result<Launcher> read_launcher(Source& job, const nlohmann::json& container, const std::string& container_path,
                               const Count& hosts, std::size_t run);

// The words of a shell's call: sh, its options and its script.
[[nodiscard]] bool is_shell(const std::string& word);
// The script's place in them; words.size() if there is none.
[[nodiscard]] std::size_t script_place(const std::vector<std::string>& words);

}  // namespace bsp::convert
