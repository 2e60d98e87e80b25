#include "operator/kube/http_tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace bsp::kube {
namespace {

using Bio = std::unique_ptr<BIO, decltype([](BIO* b) { BIO_free(b); })>;
using X509Ptr = std::unique_ptr<X509, decltype([](X509* c) { X509_free(c); })>;
using KeyPtr = std::unique_ptr<EVP_PKEY, decltype([](EVP_PKEY* k) { EVP_PKEY_free(k); })>;

Bio memory(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::vector<X509Ptr> certificates(const std::string& pem) {
  std::vector<X509Ptr> found;
  const Bio bio = memory(pem);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) found.emplace_back(certificate);
  ERR_clear_error();  // OpenSSL reports the end of the text as an error
  return found;
}

// Keeps OpenSSL from asking for a passphrase on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

KeyPtr private_key(const std::string& pem) {
  const Bio bio = memory(pem);
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return key;
}

struct Refusal {
  std::mutex mutex;
  std::string reason;
};

// Never destroyed: connections may end after main().
Refusal& last_refusal() {
  static auto* refusal = new Refusal;
  return *refusal;
}

int verify_and_note(X509_STORE_CTX* chain, void*) {
  const int good = X509_verify_cert(chain);
  const int code = X509_STORE_CTX_get_error(chain);
  if (good == 1) return good;
  const std::lock_guard lock(last_refusal().mutex);
  last_refusal().reason = code == X509_V_OK ? "it is for another host" : X509_verify_cert_error_string(code);
  return good;
}

}  // namespace

std::string take_refusal() {
  const std::lock_guard lock(last_refusal().mutex);
  return std::exchange(last_refusal().reason, {});
}

Result<void> check_tls(const TlsMaterial& material) {
  if (!material.ca.empty() && certificates(material.ca).empty())
    return fail(ErrorCode::kInvalid, "the cluster's CA (certificate-authority) contains no PEM certificate");
  if (material.certificate.empty()) return {};
  const auto chain = certificates(material.certificate);
  if (chain.empty()) return fail(ErrorCode::kInvalid, "client-certificate contains no PEM certificate");
  const KeyPtr key = private_key(material.key);
  if (!key) return fail(ErrorCode::kInvalid, "client-key contains no unencrypted private key in PEM");
  const bool pair = X509_check_private_key(chain.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (!pair) return fail(ErrorCode::kInvalid, "client-key doesn't match client-certificate");
  return {};
}

void set_up_tls(SSL_CTX* context, const TlsMaterial& material, const std::string& host, bool insecure) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  if (!material.ca.empty()) {
    // A new store, because the library has put the system's CAs into the existing one.
    X509_STORE* store = X509_STORE_new();
    for (const X509Ptr& certificate : certificates(material.ca)) X509_STORE_add_cert(store, certificate.get());
    // Trust the given CA even if it is an intermediate one.
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_cert_store(context, store);
  }
  if (!material.certificate.empty()) {
    const auto chain = certificates(material.certificate);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (i == 0)
        SSL_CTX_use_certificate(context, chain[i].get());
      else
        SSL_CTX_add1_chain_cert(context, chain[i].get());
    }
    if (const KeyPtr key = private_key(material.key)) SSL_CTX_use_PrivateKey(context, key.get());
  }
  if (!insecure) {
    X509_VERIFY_PARAM* param = SSL_CTX_get0_param(context);
    if (is_address(host)) {
      X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str());
    } else {
      X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
      X509_VERIFY_PARAM_set1_host(param, host.c_str(), host.size());
    }
    SSL_CTX_set_cert_verify_callback(context, verify_and_note, nullptr);
  }
  ERR_clear_error();
}

bool is_address(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

std::string host_of(const std::string& url) {
  const auto scheme = url.find("://");
  const auto from = scheme == std::string::npos ? 0 : scheme + 3;
  return url.substr(from, url.find_first_of(":/", from) - from);
}

}  // namespace bsp::kube
