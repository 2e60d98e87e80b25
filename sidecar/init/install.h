// bsp-init --install DIR: copies the runtime out of its image, for nodes without image volumes. The image contains no
// cp.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::init {

// Copies what an app container needs of the runtime in `from`, with modes and links. Replaces existing files, because
// an init container may be started twice.
Result<void> install(const std::string& from, const std::string& to);

}  // namespace bsp::init
