// Base64 (RFC 4648) for the data of Secrets.
#pragma once

#include <string>
#include <string_view>

namespace bsp::reconcile {

std::string base64_encode(std::string_view bytes);
std::string base64_decode(std::string_view text);  // stops at the first character that is not base64

}  // namespace bsp::reconcile
