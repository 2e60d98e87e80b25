// What an API server's certificate is checked against, and why it was refused.
#pragma once

#include <openssl/types.h>

#include <string>

#include "operator/kube/credentials.h"

namespace bsp::kube {

// Why we refused the last certificate, once; "" if we did not. cpprestsdk says no more than "Error in SSL handshake".
// All handshakes of the process run on one thread, one failing after the other, so one place for it is enough.
std::string take_refusal();

// kInvalid if CA, certificate or key can't be read as PEM or do not belong together.
Result<void> check_tls(const TlsMaterial& material);

// TLS ≥ 1.2; only the given CA is trusted (if there is one), and the certificate must be for `host`.
// What is wrong with `material` shows in the handshake.
void set_up_tls(SSL_CTX* context, const TlsMaterial& material, const std::string& host, bool insecure);

bool is_address(const std::string& host);
// "https://10.0.0.1:6443/x" -> "10.0.0.1"
std::string host_of(const std::string& url);

}  // namespace bsp::kube
