// SHA-256, as lower-case hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace bsp::net {

std::string sha256(std::string_view data);

}  // namespace bsp::net
