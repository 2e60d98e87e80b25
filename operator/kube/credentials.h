// What we show to the API server, as the files say it now: tokens and certificates are rotated under us.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "operator/kube/config.h"

namespace bsp::kube {

struct TlsMaterial {
  std::string ca;           // PEM; "": what the system trusts
  std::string certificate;  // PEM; "": none
  std::string key;
  bool operator==(const TlsMaterial&) const = default;
};

// Thread-safe. A file is read again when what we know of it is older than 10 s; one that can't be read now
// (it is being replaced) leaves what was read last.
class Credentials {
 public:
  explicit Credentials(const Config& config);

  // The value of the Authorization header; "" for none.
  std::string authorization();
  TlsMaterial tls();
  // The server did not take our token: the next authorization() reads the file again.
  void refused();
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
