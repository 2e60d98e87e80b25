// The certificates of one job: a CA of its own and one certificate for each pod and the operator.
//
// End certificates have EC P-256 keys, the CA an Ed25519 one, which can be derived. The subject's CN is the identity that base/net/link.h compares
// with the expected peer (a pod's name, or names::kOperatorIdentity). Every certificate may act as
// client and as server, because a sidecar is both. Nothing here reads a clock or a file: the caller
// gives the validity and stores the PEM texts (in a Secret, or a file with mode 0400).
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
  std::string identity;                // becomes CN and the first DNS name if it can be one
  std::vector<std::string> dns_names;  // further subjectAltName entries
  std::vector<std::string> addresses;  // IP addresses, subjectAltName
  Time not_before;
  Time not_after;
};

// A self-signed CA that may sign end certificates only (pathlen 0).
Result<PemPair> create_ca(std::string_view common_name, Time not_before, Time not_after);

// The CA whose key follows from a secret seed and the name: always the same one, so that whoever has the seed can make its
// certificate again. What was signed under one of those certificates is believed by who has another of them.
Result<PemPair> derive_ca(std::string_view seed, std::string_view common_name, Time not_before, Time not_after);
inline constexpr std::size_t kSeedBytes = 32;
Result<std::string> new_seed();

// A fresh key with a certificate signed by `ca`. Its validity must lie inside the CA's.
Result<PemPair> issue_certificate(const PemPair& ca, const CertificateRequest& request);

// When the first certificate of a PEM text stops being valid.
Result<Time> not_after(std::string_view certificate_pem);

}  // namespace bsp::net
