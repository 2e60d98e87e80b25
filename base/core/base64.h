// Base64 (RFC 4648, section 4), for the data of Secrets and the certificates in a kubeconfig.
#pragma once

#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp {

std::string base64_encode(std::string_view bytes);

// Accepts what Kubernetes accepts: padded, line breaks ignored. kInvalid ("is not base64") for anything else.
Result<std::string> base64_decode(std::string_view text);

}  // namespace bsp
