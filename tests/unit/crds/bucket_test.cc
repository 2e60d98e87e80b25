// spec.checkpoint.storage.s3: what is taken, and what a person is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/bspjob.h"

namespace bsp::crds {
namespace {

using ::testing::HasSubstr;

S3Source good() {
  return {.endpoint = "https://minio.storage:9000",
          .bucket = "sets",
          .prefix = "teams/physics",
          .credentials_secret = "keys"};
}

TEST(BucketSource, EndpointsHaveTheirParts) {
  const auto parts = [](const char* endpoint) {
    const auto of = endpoint_parts(endpoint);
    return of ? std::format("{} {} {}", of->host, of->port, of->tls) : "none";
  };
  EXPECT_EQ(parts("https://minio.storage:9000"), "minio.storage 9000 true");
  EXPECT_EQ(parts("http://10.0.0.7"), "10.0.0.7  false");
  EXPECT_EQ(parts("http://[fd00::7]:80"), "fd00::7 80 false");
  for (const char* bad :
       {"", "minio", "minio:9000", "s3://minio", "https://", "https://minio/", "https://minio/sets",
        "https://a:b@minio", "https://minio:", "https://minio:999999", "https://minio:x", "https://-minio", "https://[",
        "https://[]", "https://[::1", "https://[::1]x", "https://mi nio", "HTTPS://minio", "https://minio\n"})
    EXPECT_EQ(parts(bad), "none") << bad;
}

BspJobSpec job_with(const S3Source& s3) {
  BspJobSpec spec;
  spec.ranks = 1;
  spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}}}}}}};
  spec.checkpoint.storage.emplace();
  spec.checkpoint.storage->s3 = s3;
  return spec;
}

TEST(BucketSource, EachFieldIsCheckedByName) {
  ASSERT_TRUE(validate(job_with(good())));
  struct Bad {
    std::string S3Source::* field;
    const char *value, *name;
  };
  for (const Bad& bad :
       {Bad{&S3Source::endpoint, "minio:9000", "s3.endpoint"}, Bad{&S3Source::bucket, "", "s3.bucket"},
        Bad{&S3Source::bucket, "a", "s3.bucket"}, Bad{&S3Source::bucket, "Sets", "s3.bucket"},
        Bad{&S3Source::bucket, "sets/of", "s3.bucket"}, Bad{&S3Source::bucket, "..", "s3.bucket"},
        Bad{&S3Source::prefix, "/a", "s3.prefix"}, Bad{&S3Source::prefix, "a/", "s3.prefix"},
        Bad{&S3Source::prefix, "a//b", "s3.prefix"}, Bad{&S3Source::prefix, "../a", "s3.prefix"},
        Bad{&S3Source::prefix, "a b", "s3.prefix"}, Bad{&S3Source::region, "", "s3.region"},
        Bad{&S3Source::region, "eu_1", "s3.region"}, Bad{&S3Source::credentials_secret, "", "s3.credentialsSecret"}}) {
    S3Source s3 = good();
    s3.*bad.field = bad.value;
    const auto checked = validate(job_with(s3));
    ASSERT_FALSE(checked) << bad.name << " = " << bad.value;
    EXPECT_THAT(checked.error().message, HasSubstr("spec.checkpoint.storage." + std::string(bad.name) + ": must "));
  }
  S3Source long_one = good();
  long_one.endpoint = "https://" + std::string(250, 'a');
  EXPECT_FALSE(validate(job_with(long_one)));
}

TEST(BucketSource, BelongsToAJob) {
  BspJobSpec spec = job_with(good());
  spec.checkpoint.storage.emplace();
  EXPECT_THAT(validate(spec).error().message, HasSubstr("must have one of persistentVolumeClaim, hostPath and s3"));
  spec.checkpoint.storage->s3 = good();
  EXPECT_TRUE(validate(spec));
  spec.checkpoint.storage->host_path = HostPathSource{"/sets"};
  EXPECT_FALSE(validate(spec));
}

// They come into the path of a request.
TEST(RestoredSets, NamesOfJobsAndNamespacesAreNames) {
  const auto trouble = [](const std::string& job, const std::string& name_space, const std::string& allowed) {
    BspJobSpec spec = job_with(good());
    spec.restore_from = RestoreFrom{.job = job, .name_space = name_space};
    spec.checkpoint.allowed_namespaces = {"team-b", allowed};
    const auto checked = validate(spec);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(trouble("lbm.2", "", "team-c"), "");
  EXPECT_EQ(trouble("lbm", "team-a", "team-c"), "");
  for (const std::string bad :
       {"..", "../x", "a/b", "a%2fb", "A", "-a", "a-", "a b", "a\n", "*", "a?b", "lbm\xc3\xa4"}) {
    EXPECT_THAT(trouble(bad, "", "team-c"), HasSubstr("spec.restoreFrom.job: must ")) << bad;
    EXPECT_THAT(trouble("lbm", bad, "team-c"), HasSubstr("spec.restoreFrom.namespace: must ")) << bad;
    EXPECT_THAT(trouble("lbm", "", bad), HasSubstr("spec.checkpoint.allowedNamespaces[1]: must ")) << bad;
  }
  EXPECT_THAT(trouble("", "", "team-c"), HasSubstr("spec.restoreFrom"));
  EXPECT_THAT(trouble("lbm", "", ""), HasSubstr("spec.checkpoint.allowedNamespaces[1]: must "));
  EXPECT_THAT(trouble("lbm", "a.b", "team-c"), HasSubstr("spec.restoreFrom.namespace: must "));
  EXPECT_THAT(trouble("lbm", std::string(64, 'a'), "team-c"), HasSubstr("spec.restoreFrom.namespace: must "));
}

}  // namespace
}  // namespace bsp::crds
