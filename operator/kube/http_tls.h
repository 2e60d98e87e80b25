// Verifies an API server's certificate, and records why it was rejected.
#pragma once

#include <openssl/types.h>

#include <string>

#include "operator/kube/credentials.h"

namespace bsp::kube {

// Returns, once, why we rejected the last certificate; "" if we didn't. cpprestsdk only says "Error in SSL handshake".
// All handshakes of the process run, and fail, one after another on one thread, so one variable is enough.
std::string take_refusal();

// kInvalid if CA, certificate or key aren't PEM, or if certificate and key don't match.
Result<void> check_tls(const TlsMaterial& material);

// Requires TLS ≥ 1.2 and a certificate for `host`, and trusts only the given CA (if there is one). Errors in `material`
// show in the handshake.
void set_up_tls(SSL_CTX* context, const TlsMaterial& material, const std::string& host, bool insecure);

bool is_address(const std::string& host);
// "https://10.0.0.1:6443/x" -> "10.0.0.1"
std::string host_of(const std::string& url);

}  // namespace bsp::kube
