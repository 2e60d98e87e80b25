// Texts as files and headers hold them.
#pragma once

#include <string>

namespace bsp::kube {

// Without the white space around it.
std::string trim(const std::string& text);

}  // namespace bsp::kube
