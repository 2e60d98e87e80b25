#include "base/net/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <format>

#include "base/core/error.h"

namespace bsp::net {

std::string sha256(std::string_view data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  check(EVP_Digest(data.data(), data.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1, "SHA-256 is available");
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += std::format("{:02x}", digest[i]);
  return text;
}

}  // namespace bsp::net
