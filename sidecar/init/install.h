// bsp-init --install DIR: copies the runtime out of its image, for nodes without image volumes. The image holds no cp.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::init {

// What an app container needs of the runtime in `from`, its modes and links as they are. Files that are there already
// are replaced: an init container may be started twice.
Result<void> install(const std::string& from, const std::string& to);

}  // namespace bsp::init
