// What a launcher's command says: mpirun, what it runs under, and what the script around it prepares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "operator/convert/shell.h"
#include "operator/convert/variables.h"

namespace bsp::convert {

// A command of the launcher's script that each rank's shell runs, too, before the program.
struct Step {
  std::string text;
  bool stops = false;              // the script, if it fails
  std::string assigns;             // a variable; only if something uses it
  std::vector<std::string> needs;  // variables of the script
};

struct Launch {
  std::size_t runs = 1;     // how often the script runs mpirun; the rest is of one of them
  std::string mpirun;       // as it was written
  std::vector<Word> words;  // behind it, known values filled in
  std::string directory;    // that the script has changed to
  std::string timeout;
  std::vector<Step> steps;
  bool is_set_up = false;  // by a file or a module, which may set any variable
  Variables variables;
  std::vector<std::string> notes;  // what isn't carried over, and why
};

// `stops`: a command that fails ends the script. `run`: which mpirun of the script, from 0. kInvalid names the line of the script, the
// command and the remedy.
Result<Launch> read_script(std::string_view text, bool stops, Variables variables, std::size_t run = 0);
// A command without a shell.
Result<Launch> read_plain(const std::vector<std::string>& words, Variables variables);

// The beginning of a rank's script that sets what `words` use and exports `names`; empty if there is nothing to do.
Result<std::string> preparation(const Launch& launch, const std::vector<Word>& words,
                                const std::vector<std::string>& names);

}  // namespace bsp::convert
