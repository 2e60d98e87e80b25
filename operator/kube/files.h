// Small files of texts: tokens, certificates, kubeconfigs.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::kube {

// kNotFound, or kFailed with the system's reason.
Result<std::string> read_text(const std::string& path);

// Without the white space around it.
std::string trim(const std::string& text);

}  // namespace bsp::kube
