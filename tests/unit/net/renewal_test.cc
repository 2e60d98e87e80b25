// Renewing certificates while links are open, with CAs derived from one seed.
#include <filesystem>
#include <fstream>

#include "base/net/credentials_watch.h"
#include "tests/unit/net/link_world.h"

namespace bsp::net {
namespace {

namespace fs = std::filesystem;

Time now() { return SystemClock{}.now(); }

PemPair ca_of(const std::string& seed, Duration from, Duration to, const std::string& name = "bspjob-uid") {
  return derive_ca(seed, name, now() + from, now() + to).value();
}

Credentials signed_by(const PemPair& ca, const std::string& identity, Duration from = -1h, Duration to = 1h) {
  auto pair = issue_certificate(
      ca,
      {.identity = identity, .dns_names = {}, .addresses = {}, .not_before = now() + from, .not_after = now() + to});
  EXPECT_TRUE(pair) << pair.error().message;
  return {ca.certificate, pair->certificate, pair->key};
}

Result<Answer> ask(World& world, const Credentials& client) {
  return Link(TlsContext::create(client).value(), {world.address(), "server"}).call("say", {}, 10s);
}

ErrorCode code_of(const Result<Answer>& answer) { return answer ? ErrorCode::kInvalid : answer.error().code; }

TEST(Renewal, CasFromOneSeedTrustEachOther) {
  const std::string seed = new_seed().value();
  const PemPair old = ca_of(seed, -400 * 24h, 2h), renewed = ca_of(seed, -1h, 365 * 24h);
  EXPECT_NE(old.certificate, renewed.certificate);
  EXPECT_EQ(old.key, renewed.key);
  {
    World world(echo, TlsContext::create(signed_by(old, "server")).value());
    EXPECT_TRUE(ask(world, signed_by(renewed, "client", -1h, 300 * 24h)));
    EXPECT_TRUE(ask(world, signed_by(old, "client")));
  }
  World world(echo, TlsContext::create(signed_by(renewed, "server", -1h, 300 * 24h)).value());
  EXPECT_TRUE(ask(world, signed_by(old, "client")));
}

TEST(Renewal, SeedAndJobDetermineTheCa) {
  const std::string seed = new_seed().value(), other = new_seed().value();
  World world(echo, TlsContext::create(signed_by(ca_of(seed, -1h, 2h), "server")).value());
  EXPECT_EQ(code_of(ask(world, signed_by(ca_of(other, -1h, 2h), "client"))), ErrorCode::kUntrusted);
  EXPECT_EQ(code_of(ask(world, signed_by(ca_of(seed, -1h, 2h, "bspjob-other"), "client"))), ErrorCode::kUntrusted);
  EXPECT_FALSE(derive_ca("too short", "bspjob-uid", now(), now() + 1h));
}

TEST(Renewal, WhoHasSignedACertificateIsSeenFromTheKeyAlone) {
  const std::string seed = new_seed().value();
  const std::string leaf = signed_by(ca_of(seed, -1h, 2h), "server").certificate;
  EXPECT_TRUE(is_signed_by(leaf, ca_of(seed, -1h, 2h).certificate));
  EXPECT_TRUE(is_signed_by(leaf, ca_of(seed, -400 * 24h, -1h).certificate)) << "whatever its dates";
  EXPECT_FALSE(is_signed_by(leaf, ca_of(new_seed().value(), -1h, 2h).certificate));
  EXPECT_FALSE(is_signed_by(leaf, leaf));
  for (const char* text : {"", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}) {
    EXPECT_FALSE(is_signed_by(leaf, text)) << text;
    EXPECT_FALSE(is_signed_by(text, leaf)) << text;
  }
}

TEST(Renewal, ADnsNameMayBeLongerThanAnIdentity) {
  const PemPair ca = ca_of(new_seed().value(), -1h, 2h);
  const auto issue = [&](const std::string& identity, const std::string& name) {
    return issue_certificate(ca, {.identity = identity,
                                  .dns_names = {name},
                                  .addresses = {},
                                  .not_before = now() - 1h,
                                  .not_after = now() + 1h})
        .has_value();
  };
  EXPECT_TRUE(issue("operator", std::string(63, 'a') + "." + std::string(63, 'b') + ".svc"));
  EXPECT_FALSE(issue("operator", std::string(254, 'a')));
  EXPECT_FALSE(issue(std::string(65, 'a'), "a.svc"));
  EXPECT_FALSE(issue("operator", "a.svc,DNS:kubernetes.default.svc")) << "it would be two";
}

TEST(Renewal, RenewalReachesAllCopiesAndKeepsOpenLinks) {
  const PemPair ca = ca_of(new_seed().value(), -48h, 48h);
  TlsContext context = TlsContext::create(signed_by(ca, "server", -2h, 1h)).value();
  World world(echo, context);
  Link open(TlsContext::create(signed_by(ca, "client")).value(), {world.address(), "server"});
  ASSERT_TRUE(open.call("say", {}, 10s));

  ASSERT_TRUE(context.renew(signed_by(ca, "server", -2h, -1h)));
  EXPECT_EQ(code_of(ask(world, signed_by(ca, "client"))), ErrorCode::kUntrusted)
      << "the server's certificate is out of date now";
  EXPECT_TRUE(open.call("say", {}, 10s));

  Credentials torn = signed_by(ca, "server");
  torn.key = signed_by(ca, "server").key;
  EXPECT_FALSE(context.renew(torn));
  ASSERT_TRUE(context.renew(signed_by(ca, "server")));
  EXPECT_FALSE(context.renew(torn));
  EXPECT_TRUE(ask(world, signed_by(ca, "client")));
  EXPECT_TRUE(open.call("say", {}, 10s));
}

// Replaces files like a kubelet: they are links through ..data, which is replaced atomically.
class Volume {
 public:
  Volume() {
    char path[] = "/tmp/bsp-volume-XXXXXX";
    root_ = ::mkdtemp(path);
    for (const char* file : {"ca.pem", "cert.pem", "key.pem"})
      fs::create_symlink(std::string("..data/") + file, root_ / file);
  }
  ~Volume() { fs::remove_all(root_); }
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;

  void show(const Credentials& c) {
    const std::string name = std::format("..{}", ++shown_);
    fs::create_directory(root_ / name);
    for (const auto& [file, text] : {std::pair{"ca.pem", c.ca}, {"cert.pem", c.certificate}, {"key.pem", c.key}})
      std::ofstream(root_ / name / file) << text;
    fs::create_symlink(name, root_ / "..new");
    fs::rename(root_ / "..new", root_ / "..data");
  }
  [[nodiscard]] std::string path() const { return root_; }

 private:
  fs::path root_;
  int shown_ = 0;
};

TEST(CredentialsWatch, ReadsReplacedFiles) {
  const PemPair ca = ca_of(new_seed().value(), -48h, 48h), other = ca_of(new_seed().value(), -48h, 48h);
  Volume volume;
  volume.show(signed_by(ca, "server"));
  const Credentials loaded = load_credentials(volume.path()).value();
  const TlsContext context = TlsContext::create(loaded).value();
  World world(echo, context);
  std::unique_ptr<CredentialsWatch> watch;
  world.on_loop([&] { watch = std::make_unique<CredentialsWatch>(world.loop(), context, volume.path(), loaded, 5ms); });
  const auto becomes = [&](const PemPair& by) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!ask(world, signed_by(by, "client")))
      if (std::chrono::steady_clock::now() > deadline) return false;
    return true;
  };
  EXPECT_TRUE(becomes(ca));
  Credentials unusable = signed_by(other, "server");
  unusable.key = "no key";
  volume.show(unusable);
  EXPECT_TRUE(becomes(ca));
  volume.show(signed_by(other, "server"));
  EXPECT_TRUE(becomes(other));
  EXPECT_EQ(code_of(ask(world, signed_by(ca, "client"))), ErrorCode::kUntrusted);
  fs::remove(volume.path() + "/..data");
  EXPECT_TRUE(becomes(other)) << "missing files change nothing";
  volume.show(signed_by(ca, "server"));
  EXPECT_TRUE(becomes(ca));
  world.on_loop([&] { watch.reset(); });
}

}  // namespace
}  // namespace bsp::net
