// spec.restoreFrom.exported: a checkpoint set that somebody has copied, or written.
#include "crds/sets/exported_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/core/base64.h"
#include "tests/unit/reconcile/every_place.h"

namespace bsp::crds {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

ExportedSet good() {
  StoredSet set;
  set.id = 7;
  set.superstep = {70};
  set.epoch = 9;
  set.attempt = 1;
  set.bytes = 1000;
  set.base = 1;
  set.image = "app@sha256:1";
  set.digests = base64_encode(std::string(64, 'd'));
  set.runtime = "aa";
  return {.uid = "0b7e-1", .epochs_used = 12, .set = set};
}

std::string trouble_of(const std::string& text) {
  const auto read = read_exported(text);
  return read ? std::string() : read.error().message;
}
std::string trouble_of(const ExportedSet& exported) { return trouble_of(export_text(exported)); }

TEST(ExportedSet, ArrivesAsItWas) {
  const ExportedSet before = good();
  const ExportedSet after = read_exported(export_text(before)).value();
  EXPECT_EQ(after.uid, before.uid);
  EXPECT_EQ(after.epochs_used, before.epochs_used);
  EXPECT_EQ(export_text(after), export_text(before));
}

TEST(ExportedSet, ThatIsNoneIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("text"), std::string("null"), base64_encode("null"), base64_encode("[]"),
        base64_encode("{}"), base64_encode(std::string("\0", 1)), base64_encode(std::string(2000, '['))})
    EXPECT_THAT(trouble_of(text), HasSubstr("kubectl bsp checkpoints JOB --export prints it")) << text;
  EXPECT_THAT(trouble_of(std::string(1 << 20, 'A')), HasSubstr("is too long"));
}

// It becomes a directory's name, and numbers are counted on from its own.
TEST(ExportedSet, ThatLeadsElsewhereIsRefused) {
  for (const std::string uid : {"", "..", "../u", "u/..", "/u", "u\n", "U", "u.1", "-/"}) {
    ExportedSet bad = good();
    bad.uid = uid;
    EXPECT_NE(trouble_of(bad), "") << uid;
  }
  for (const std::uint64_t number : {std::uint64_t{1} << 53, std::uint64_t{INT64_MAX}}) {
    ExportedSet bad = good();
    bad.set.id = number;
    EXPECT_NE(trouble_of(bad), "");
    bad = good();
    bad.set.epoch = number;
    EXPECT_NE(trouble_of(bad), "");
    bad = good();
    bad.set.superstep = {number};
    EXPECT_NE(trouble_of(bad), "");
    bad = good();
    bad.epochs_used = number;
    EXPECT_NE(trouble_of(bad), "");
  }
  for (const std::uint64_t base : {7, 8}) {
    ExportedSet bad = good();
    bad.set.base = base;
    EXPECT_NE(trouble_of(bad), "");
  }
  for (const std::string digests : {"", "text", "AAAA"}) {
    ExportedSet bad = good();
    bad.set.digests = digests;
    EXPECT_THAT(trouble_of(bad), HasSubstr("digest")) << digests;
  }
}

TEST(ExportedSet, GrantsNothing) {
  ExportedSet forged = good();
  forged.set.of_job = "victim";
  forged.set.grant = "found";
  forged.set.unusable = "text";
  const ExportedSet read = read_exported(export_text(forged)).value();
  EXPECT_EQ(read.set.of_job + read.set.grant + read.set.unusable, "");
}

TEST(ExportedSet, WithNullOrTextAnywhereIsReadOrRefused) {
  const json whole = json::parse(base64_decode(export_text(good())).value());
  reconcile::hostile::at_every_place(whole, [](const json& bad, const json::json_pointer&) {
    const auto read = read_exported(base64_encode(bad.dump()));
    if (!read) return;
    EXPECT_EQ(trouble_of(*read), "") << bad;
    EXPECT_NE(read->uid, "") << bad;
  });
}

}  // namespace
}  // namespace bsp::crds
