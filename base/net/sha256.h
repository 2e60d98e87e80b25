// SHA-256 in lower-case hexadecimal.
#pragma once

#include <string>
#include <string_view>

namespace bsp::net {

std::string sha256(std::string_view data);

}  // namespace bsp::net
