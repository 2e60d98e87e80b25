// Buckets for --checkpoints: what the name and the environment say.
#include "operator/local/cli/bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace bsp::local {
namespace {

using ::testing::HasSubstr;

class BucketPlace : public testing::Test {
 protected:
  BucketPlace() {
    for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION",
                             "AWS_CA_BUNDLE", "XDG_STATE_HOME", "HOME"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? value : "";
      ::unsetenv(name);
    }
  }
  ~BucketPlace() override {
    for (const auto& [name, value] : before_)
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }

 private:
  std::map<std::string, std::string> before_;
};

TEST_F(BucketPlace, IsToldFromADirectory) {
  EXPECT_TRUE(names_bucket("s3://sets/team").value());
  for (const char* directory : {"/sets", "sets", "s3:", "s3:/sets", "a:b"})
    EXPECT_FALSE(names_bucket(directory).value());
  for (const char* other : {"gs://sets", "https://minio:9000/sets", "S3://sets", "file:///sets"})
    EXPECT_THAT(names_bucket(other).error().message, HasSubstr("must be a directory or s3://BUCKET[/PREFIX]")) << other;
}

TEST_F(BucketPlace, HasItsAddressFromTheEnvironment) {
  const auto nowhere = bucket_of("s3://sets/team");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("set AWS_ENDPOINT_URL in the environment"));
  set("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/");
  crds::S3Source s3 = bucket_of("s3://sets/teams/physics/").value();
  EXPECT_EQ(s3.endpoint, "http://127.0.0.1:9000");
  EXPECT_EQ(s3.bucket, "sets");
  EXPECT_EQ(s3.prefix, "teams/physics");
  EXPECT_EQ(s3.region, "us-east-1");
  EXPECT_NE(s3.credentials_secret, "");
  EXPECT_EQ(s3.ca_secret, "");
  set("AWS_ENDPOINT_URL_S3", "https://s3.example");
  set("AWS_DEFAULT_REGION", "eu-west-1");
  set("AWS_CA_BUNDLE", "/ca.crt");
  s3 = bucket_of("s3://sets").value();
  EXPECT_EQ(s3.endpoint, "https://s3.example") << "the variable of this service goes first";
  EXPECT_EQ(s3.prefix, "");
  EXPECT_EQ(s3.region, "eu-west-1");
  EXPECT_NE(s3.ca_secret, "");
  EXPECT_NE(s3.ca_secret, s3.credentials_secret);
  set("AWS_REGION", "eu-central-1");
  EXPECT_EQ(bucket_of("s3://sets").value().region, "eu-central-1");
  set("AWS_ENDPOINT_URL_S3", "s3.example");
  EXPECT_THAT(bucket_of("s3://sets").error().message, HasSubstr("AWS_ENDPOINT_URL: must be http:// or https://"));
}

// The seed in the bucket would open it for whoever reads there.
TEST_F(BucketPlace, KeepsItsSeedWithTheUser) {
  EXPECT_THAT(own_directory_of("s3://sets").error().message, HasSubstr("set HOME or XDG_STATE_HOME"));
  set("HOME", "/home/ann");
  EXPECT_EQ(own_directory_of("s3://sets/team/").value(), "/home/ann/.local/state/bsp-operator/s3/sets/team");
  set("XDG_STATE_HOME", "relative");  // is to be ignored, says the specification
  EXPECT_EQ(own_directory_of("s3://sets").value(), "/home/ann/.local/state/bsp-operator/s3/sets");
  set("XDG_STATE_HOME", "/state");
  EXPECT_EQ(own_directory_of("s3://sets").value(), "/state/bsp-operator/s3/sets");
  for (const char* place : {"s3://", "s3:///", "s3://../sets", "s3://sets/../../etc", "s3://sets//a", "s3://sets/.a"})
    EXPECT_FALSE(own_directory_of(place)) << place;
}

}  // namespace
}  // namespace bsp::local
