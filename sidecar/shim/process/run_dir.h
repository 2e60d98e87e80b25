// The directory that bsp-init and the sidecar share with the program.
#pragma once

#include <string>
#include <string_view>

namespace bsp::shim {

// "/run/bsp/epoch" -> "$BSP_RUN_DIR/epoch"
std::string in_run_dir(std::string_view path);
// True if bsp-init (or a test) started this process: its run directory exists. Exits with a message if it can't tell, because
// the rank would run as a job of its own.
bool has_run_dir();

}  // namespace bsp::shim
