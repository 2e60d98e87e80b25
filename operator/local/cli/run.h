// `bsp-operator local run`: a little cluster on this machine, one job in it, and nothing left of it afterwards.
//
// The process the user started watches: it draws, restarts the operator's process (serve.h) should it die, and
// cleans up at the end. Exit status: 0 the job succeeded, 1 it did not, 2 the call was wrong, 130 Ctrl-C.
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::local {

int run(std::span<const std::string> args);

// Takes away what a store holds outside of it and then the store itself: containers, network namespaces, mounts,
// files. Fine if nothing is there. No operator may serve it any more.
Result<void> remove_cluster(const std::string& root, const std::string& name_space);

}  // namespace bsp::local
