#include "base/net/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "base/core/error.h"
#include "base/core/hex.h"

namespace bsp::net {

std::string sha256(std::string_view data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  check(EVP_Digest(data.data(), data.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1, "SHA-256 is available");
  return hex_of({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace bsp::net
