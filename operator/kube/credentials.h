// Our credentials for the API server, kept up to date with their files: tokens and certificates rotate.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "operator/kube/config.h"

namespace bsp::kube {

struct TlsMaterial {
  std::string ca;           // PEM; "": the system's CAs
  std::string certificate;  // PEM; "": none
  std::string key;
  bool operator==(const TlsMaterial&) const = default;
};

// Thread-safe. Rereads a file after 10 s. While a file can't be read (it may be half replaced), the last content stays
// in use.
class Credentials {
 public:
  explicit Credentials(const Config& config);

  // The value of the Authorization header; "" for none.
  std::string authorization();
  TlsMaterial tls();
  // Call this when the server rejects our token: the next authorization() rereads the file.
  void invalidate_token();
  [[nodiscard]] bool has_token_file() const { return !token_.given.file.empty(); }

 private:
  struct Held {
    Material given;
    std::string value;
    std::chrono::steady_clock::time_point read{};
  };
  const std::string& current(Held& held);

  std::mutex mutex_;
  Held token_, ca_, certificate_, key_;
  std::string basic_;
};

}  // namespace bsp::kube
