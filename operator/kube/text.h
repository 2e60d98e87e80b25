// Helpers for text in files and headers.
#pragma once

#include <string>

namespace bsp::kube {

// Removes leading and trailing whitespace.
std::string trim(const std::string& text);

}  // namespace bsp::kube
