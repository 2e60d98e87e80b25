// The certificates of one job: its own CA, and one certificate each for every pod and the operator.
//
// Leaf certificates have EC P-256 keys; the CA has an Ed25519 key, which can be derived from a seed. The subject's CN
// is the identity that base/net/link.h compares with the expected peer (a pod's name, or names::kOperatorIdentity).
// Every certificate is valid for client and server, because a sidecar is both. Nothing here reads a clock or a file:
// the caller gives the validity and stores the PEM (in a Secret, or a file with mode 0400).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/error.h"

namespace bsp::net {

struct PemPair {
  std::string certificate;  // PEM
  std::string key;          // PEM, PKCS#8, unencrypted
};

struct CertificateRequest {
  std::string identity;                // becomes the CN, and the first DNS name if it is a valid one
  std::vector<std::string> dns_names;  // further subjectAltName entries
  std::vector<std::string> addresses;  // IP addresses, subjectAltName
  Time not_before;
  Time not_after;
};

// A self-signed CA that may sign leaf certificates only (pathlen 0).
Result<PemPair> create_ca(std::string_view common_name, Time not_before, Time not_after);

// A CA whose key is derived from a secret seed and the name. The key is always the same, so whoever has the seed can
// recreate the CA's certificate, and each of those certificates verifies what was signed under another.
Result<PemPair> derive_ca(std::string_view seed, std::string_view common_name, Time not_before, Time not_after);
inline constexpr std::size_t kSeedBytes = 32;
Result<std::string> new_seed();

// A key of 32 bytes for one purpose: from it neither the seed follows nor the key of another purpose.
Result<std::string> derive_key(std::string_view seed, std::string_view purpose);

// A new key, with a certificate signed by `ca`. It must not outlive the CA.
Result<PemPair> issue_certificate(const PemPair& ca, const CertificateRequest& request);

// Whether the first CA in a PEM text has signed the certificate; whatever its dates.
bool is_signed_by(std::string_view certificate_pem, std::string_view ca_pem);

// When the first certificate in a PEM text expires.
Result<Time> not_after(std::string_view certificate_pem);

}  // namespace bsp::net
