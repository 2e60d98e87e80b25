#include "base/net/pki.h"

#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "base/net/owned.h"

namespace bsp::net {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

std::unexpected<Error> openssl_failed(const char* what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return fail(ErrorCode::kFailed, std::format("{}: {}", what, reason ? reason : "unknown reason"));
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

Result<PemPair> to_pem(X509* certificate, EVP_PKEY* key) {
  auto certificate_text = own(BIO_new(BIO_s_mem()), BIO_free);
  auto key_text = own(BIO_new(BIO_s_mem()), BIO_free);
  if (PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed("writing PEM");
  return PemPair{text_of(certificate_text.get()), text_of(key_text.get())};
}

Result<Certificate> read_certificate(std::string_view pem) {
  auto bio = own(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
  if (!certificate) return openssl_failed("reading a certificate");
  return certificate;
}

constexpr std::size_t kNameBytes = 64;      // X.509's ub-common-name
constexpr std::size_t kDnsNameBytes = 253;  // RFC 1035

bool is_name(std::string_view text, std::size_t most = kNameBytes) {
  return !text.empty() && text.size() <= most &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:") ==
             std::string_view::npos;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  auto extension = own(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()), X509_EXTENSION_free);
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Ed25519 has a built-in digest.
const EVP_MD* digest_for(EVP_PKEY* key) { return EVP_PKEY_is_a(key, "ED25519") == 1 ? nullptr : EVP_sha256(); }

// Serial number, subject, validity and public key; extensions, issuer and signature are the caller's.
Result<Certificate> begin(EVP_PKEY* key, std::string_view common_name, Time not_before, Time not_after) {
  if (!is_name(common_name))
    return fail(ErrorCode::kInvalid, std::format("\"{}\" can't be a certificate's name: 1 to 64 letters, "
                                                 "digits, '.', '-', '_' or ':'",
                                                 common_name));
  if (not_after <= not_before) return fail(ErrorCode::kInvalid, "the certificate would never be valid");
  if (!key) return openssl_failed("generating a key");
  Certificate certificate(X509_new(), X509_free);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return openssl_failed("generating random bytes");
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, and of fixed length
  auto number = own(BN_bin2bn(serial, sizeof serial, nullptr), BN_free);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  bool ok = X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
            BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get())) &&
            X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                       reinterpret_cast<const unsigned char*>(common_name.data()),
                                       static_cast<int>(common_name.size()), -1, 0) == 1 &&
            X509_set_pubkey(certificate.get(), key) == 1 &&
            ASN1_TIME_set(X509_getm_notBefore(certificate.get()),
                          std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(not_before))) &&
            ASN1_TIME_set(X509_getm_notAfter(certificate.get()),
                          std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(not_after)));
  if (!ok) return openssl_failed("creating a certificate");
  return certificate;
}

Result<PemPair> self_signed(const Key& key, std::string_view common_name, Time not_before, Time not_after) {
  BSP_TRY(const Certificate certificate, begin(key.get(), common_name, not_before, not_after));
  X509* self = certificate.get();
  bool ok = X509_set_issuer_name(self, X509_get_subject_name(self)) == 1 &&
            add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
            add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign") &&
            add_extension(self, self, NID_subject_key_identifier, "hash") &&
            X509_sign(self, key.get(), digest_for(key.get())) > 0;
  if (!ok) return openssl_failed("creating the CA");
  return to_pem(self, key.get());
}

}  // namespace

Result<PemPair> create_ca(std::string_view common_name, Time not_before, Time not_after) {
  return self_signed(Key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free), common_name, not_before,
                     not_after);
}

Result<std::string> new_seed() {
  std::string seed(kSeedBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(seed.data()), static_cast<int>(seed.size())) != 1)
    return openssl_failed("generating random bytes");
  return seed;
}

// One block of HKDF-Expand (RFC 5869). The seed is uniformly random, so HKDF-Extract isn't needed.
Result<std::string> derive_key(std::string_view seed, std::string_view purpose) {
  if (seed.size() != kSeedBytes)
    return fail(ErrorCode::kInvalid, std::format("the seed has {} bytes; it must have {}", seed.size(), kSeedBytes));
  const std::string info = std::format("bsp-operator {}\x01", purpose);
  std::string key(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), seed.data(), static_cast<int>(seed.size()),
            reinterpret_cast<const unsigned char*>(info.data()), info.size(),
            reinterpret_cast<unsigned char*>(key.data()), &size))
    return openssl_failed("deriving a key");
  key.resize(size);
  return key;
}

Result<PemPair> derive_ca(std::string_view seed, std::string_view common_name, Time not_before, Time not_after) {
  BSP_TRY(std::string key, derive_key(seed, std::format("CA {}", common_name)));
  auto derived =
      self_signed(Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr,
                                                   reinterpret_cast<const unsigned char*>(key.data()), key.size()),
                      EVP_PKEY_free),
                  common_name, not_before, not_after);
  OPENSSL_cleanse(key.data(), key.size());
  return derived;
}

Result<PemPair> issue_certificate(const PemPair& ca, const CertificateRequest& request) {
  BSP_TRY(Certificate issuer, read_certificate(ca.certificate));
  auto key_bio = own(BIO_new_mem_buf(ca.key.data(), static_cast<int>(ca.key.size())), BIO_free);
  Key issuer_key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  if (!issuer_key) return openssl_failed("reading the CA's key");
  BSP_TRY(Time ca_end, not_after(ca.certificate));
  if (std::chrono::floor<std::chrono::seconds>(request.not_after) > ca_end)  // X.509 has whole seconds
    return fail(ErrorCode::kInvalid, std::format("the certificate of \"{}\" would outlive its CA", request.identity));
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  BSP_TRY(const Certificate certificate, begin(key.get(), request.identity, request.not_before, request.not_after));

  std::string names;
  auto add_name = [&](const char* kind, const std::string& name) -> Result<void> {
    if (!is_name(name, kDnsNameBytes))
      return fail(ErrorCode::kInvalid, std::format("\"{}\" can't be a certificate's name", name));
    names += std::format("{}{}:{}", names.empty() ? "" : ",", kind, name);
    return {};
  };
  if (request.identity.find(':') == std::string::npos) BSP_CHECK_OK(add_name("DNS", request.identity));
  for (const std::string& name : request.dns_names) BSP_CHECK_OK(add_name("DNS", name));
  for (const std::string& address : request.addresses) BSP_CHECK_OK(add_name("IP", address));

  X509* self = certificate.get();
  bool ok = X509_set_issuer_name(self, X509_get_subject_name(issuer.get())) == 1 &&
            add_extension(self, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
            add_extension(self, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
            add_extension(self, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth") &&
            add_extension(self, issuer.get(), NID_subject_key_identifier, "hash") &&
            add_extension(self, issuer.get(), NID_authority_key_identifier, "keyid:always") &&
            (names.empty() || add_extension(self, issuer.get(), NID_subject_alt_name, names)) &&
            X509_sign(self, issuer_key.get(), digest_for(issuer_key.get())) > 0;
  if (!ok) return openssl_failed("issuing a certificate");
  return to_pem(self, key.get());
}

bool is_signed_by(std::string_view certificate_pem, std::string_view ca_pem) {
  const auto certificate = read_certificate(certificate_pem), ca = read_certificate(ca_pem);
  const bool is = certificate && ca && X509_verify(certificate->get(), X509_get0_pubkey(ca->get())) == 1;
  ERR_clear_error();
  return is;
}

Result<Time> not_after(std::string_view certificate_pem) {
  BSP_TRY(Certificate certificate, read_certificate(certificate_pem));
  std::tm when{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &when) != 1)
    return openssl_failed("reading a certificate's notAfter");
  return Time(std::chrono::seconds(timegm(&when)));
}

}  // namespace bsp::net
