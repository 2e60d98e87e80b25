// How bsp-init calls criu, and what it quotes from criu's log.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/init/process.h"

namespace bsp::init {

struct CriuPaths {
  std::string binary;  // <runtime>/bin/criu, or BSP_CRIU (tests)
  std::string work;    // log files and criu's cache of kernel features; on the tmpfs
};

// `criu dump --stream` of the stopped process into <images>/streamer-capture.sock; it stays stopped.
std::vector<std::string> dump_arguments(const CriuPaths& paths, pid_t pid, const std::string& images);

struct InheritedPipe {
  int descriptor = 0;  // of the criu process
  std::string was;     // pipe:[inode] at the source
};

// `criu restore -d` of the files in `images`.
std::vector<std::string> restore_arguments(const CriuPaths& paths, const std::string& images,
                                           const std::vector<InheritedPipe>& pipes);

// A call that only fills criu's cache of kernel features (which saves a pause 10 ms).
std::vector<std::string> warm_up_arguments(const CriuPaths& paths);

// Creates the work directory, writable for the program's uid.
Result<void> prepare_work_dir(const CriuPaths& paths);
std::string log_file(const CriuPaths& paths, std::string_view action);  // "dump" or "restore"

// Starts criu under the program's uid with its three ambient capabilities. Descriptors 0-2 are /dev/null and
// <action>.out; `more` follow as 3, 4, ….
Result<pid_t> start_criu(const CriuPaths& paths, std::string_view action, const std::vector<std::string>& argv,
                         const User& user, const std::vector<int>& more);

// The messages of criu's error lines without time, file and line number, without duplicates, joined by "; ", at most
// three (the last one is usually a consequence of the first). "" if there is none.
std::string criu_errors(std::string_view log);

// "criu dump failed: <errors>", or with the exit status if it wrote none.
std::string criu_failure(const CriuPaths& paths, std::string_view action, const User& user, int wait_status);

}  // namespace bsp::init
