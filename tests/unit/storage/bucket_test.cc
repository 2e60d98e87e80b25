// A bucket of a real S3 server, and what it does on a bad day.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <format>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "sidecar/storage/bucket.h"
#include "tests/unit/storage/bucket_server.h"

namespace bsp::storage {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Fault = FaultyProxy::Fault;

ImageName name_of(std::uint32_t rank, std::uint64_t set = 7) {
  return {.job_uid = "0a1b-2c3d", .set = set, .epoch = 3, .attempt = 1, .rank = rank, .ranks = 4};
}

std::string random_text(std::size_t size) {
  std::mt19937_64 random(size);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

class InBucket : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!BucketServer::can_run())
      GTEST_SKIP() << "needs rclone (images/client.packages) and versitygw (tests/cluster/build.sh versitygw)";
    server_ = std::make_unique<BucketServer>();
    proxy_ = std::make_unique<FaultyProxy>(server_->port());
    location_ = server_->location(proxy_->port());
  }

  [[nodiscard]] Bucket bucket() const { return Bucket(location_); }
  Result<void> store(const ImageName& name, const std::string& text) {
    const Bucket bucket(location_);
    BSP_TRY(const auto image, bucket.create(name, text.size()));
    for (std::string_view rest = text; !rest.empty();) {
      const auto piece = rest.substr(0, 256 << 10);
      BSP_CHECK_OK(image->write(std::as_bytes(std::span(piece))));
      rest.remove_prefix(piece.size());
    }
    return image->publish();
  }
  Result<std::string> read(const ImageName& name) {
    const Bucket bucket(location_);
    BSP_TRY(const auto image, bucket.open(name));
    std::string text;
    std::vector<std::byte> buffer(100'000);
    for (;;) {
      BSP_TRY(const std::size_t n, image->read(buffer));
      if (n == 0) return text;
      text.append(reinterpret_cast<const char*>(buffer.data()), n);
    }
  }
  [[nodiscard]] fs::path file(const ImageName& name) const {
    return server_->files() / "team" / name.job_uid / set_name(name.set) / file_name(name);
  }
  // A message that helps, and tells no secret.
  void check_message(const Error& error, const std::string& what) const {
    EXPECT_THAT(error.message, HasSubstr("s3://sets/team at " + location_.endpoint));
    EXPECT_THAT(error.message, HasSubstr(what));
    for (const char* secret : {kAccessKey, kSecretKey}) EXPECT_THAT(error.message, Not(HasSubstr(secret)));
    EXPECT_THAT(error.code, Not(AnyOf(ErrorCode::kRefused, ErrorCode::kNotFound, ErrorCode::kInvalid)))
        << "these say that the image is damaged, and would cost the set: " << error.message;
  }

  std::unique_ptr<BucketServer> server_;
  std::unique_ptr<FaultyProxy> proxy_;
  Location location_;
};

TEST_F(InBucket, AnImageIsThereOnceItIsPublished) {
  const std::string text = random_text(20'000'000);  // three parts
  {
    const Bucket bucket(location_);
    auto image = bucket.create(name_of(1), text.size());
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_TRUE((*image)->write(std::as_bytes(std::span(text))));
    EXPECT_GT((*image)->cpu_time(), 0ns);
    EXPECT_EQ(bucket.open(name_of(1)).error().code, ErrorCode::kNotFound);
  }
  EXPECT_EQ(read(name_of(1)).error().code, ErrorCode::kNotFound) << "what was given up is no object";
  const auto stored = store(name_of(1), text);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_TRUE(read(name_of(1)) == text);  // too long to be printed
  EXPECT_TRUE(fs::exists(file(name_of(1))));
  // Small ones are no multipart uploads.
  ASSERT_TRUE(store(name_of(2), "small"));
  EXPECT_EQ(read(name_of(2)), "small");
}

TEST_F(InBucket, NoNameIsGivenTwice) {
  ASSERT_TRUE(store(name_of(1), "first"));
  const auto second = store(name_of(1), "second");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(read(name_of(1)), "first");
}

TEST_F(InBucket, NamesThatLeaveThePrefixAreRefused) {
  ImageName out = name_of(1);
  out.job_uid = "../elsewhere";
  EXPECT_EQ(bucket().create(out, 1).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(bucket().open(out).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(bucket().remove_sets("..", 9, {}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(proxy_->requests(), 0);
}

TEST_F(InBucket, SetsGoButThoseThatAreKeptOrNewer) {
  // Of the third group's sets none builds on those of the first two.
  for (const std::uint64_t set : {1, 2, 9, 17, 18}) ASSERT_TRUE(store(name_of(0, set), "x"));
  ASSERT_TRUE(store(name_of(1, 1), "y"));
  ImageName others = name_of(0, 1);
  others.job_uid = "another";
  ASSERT_TRUE(store(others, "x"));
  const auto removed = bucket().remove_sets("0a1b-2c3d", 17, {9});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_THAT(*removed, ElementsAre(1, 2));
  for (const std::uint64_t set : {9, 17, 18}) EXPECT_TRUE(read(name_of(0, set))) << set;
  EXPECT_EQ(read(name_of(1, 1)).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(read(others)) << "another job's";
  EXPECT_THAT(*bucket().remove_sets("0a1b-2c3d", 17, {9}), ElementsAre());
  EXPECT_THAT(*bucket().remove_sets("unknown", 17, {}), ElementsAre());
  EXPECT_THAT(*bucket().remove_sets("0a1b-2c3d", UINT64_MAX, {}), ElementsAre(9, 17, 18));
}

TEST_F(InBucket, WhatOthersBuildOnStays) {
  for (const std::uint64_t set : {1, 2, 3, 4})
    for (const std::uint32_t rank : {0, 1}) ASSERT_TRUE(store(name_of(rank, set), "x"));
  EXPECT_THAT(*bucket().remove_sets("0a1b-2c3d", 4, {3}), ElementsAre(2));
  for (const std::uint64_t set : {3, 4}) ASSERT_TRUE(bucket().mark_whole(name_of(0, set)));
  EXPECT_THAT(*bucket().remove_sets("0a1b-2c3d", 4, {3}), ElementsAre());
  EXPECT_EQ(read(name_of(0, 1)).error().code, ErrorCode::kNotFound) << "rank 0 builds on it no more";
  EXPECT_TRUE(read(name_of(1, 1)));
  ASSERT_TRUE(bucket().mark_whole(name_of(1, 4)));
  EXPECT_THAT(*bucket().remove_sets("0a1b-2c3d", 4, {}), ElementsAre(1, 3));
  for (const std::uint32_t rank : {0, 1}) EXPECT_TRUE(read(name_of(rank, 4)));
}

// Each has one open, as many as may be at once, and needs another to go on.
TEST_F(InBucket, ReadersOfWhatBuildsOnAnotherAllComeToTheirEnd) {
  for (const std::uint64_t set : {1, 2})
    for (const std::uint32_t rank : {0, 1, 2}) ASSERT_TRUE(store(name_of(rank, set), "x"));
  const Bucket bucket(location_);
  std::atomic<bool> given_up = false;
  std::atomic<int> ended = 0;
  std::barrier all_have_one(3);
  std::vector<std::jthread> readers;
  for (const std::uint32_t rank : {0, 1, 2})
    readers.emplace_back([&, rank] {
      const auto image = bucket.open(name_of(rank, 2), &given_up);
      all_have_one.arrive_and_wait();
      const auto base = bucket.open_base(name_of(rank, 1), &given_up);
      if (image && base) ++ended;
    });
  for (int i = 0; i < 1200 && ended < 3; ++i) std::this_thread::sleep_for(100ms);
  given_up = true;
  readers.clear();
  EXPECT_EQ(ended, 3);
}

TEST_F(InBucket, AJobGoesWithAllThatItStoredAndNothingElse) {
  for (const std::uint64_t set : {1, 2, 3}) ASSERT_TRUE(store(name_of(0, set), "x"));
  for (const char* uid : {"0a1b-2c3d-2", "another"}) {
    ImageName others = name_of(0, 1);
    others.job_uid = uid;
    ASSERT_TRUE(store(others, "x"));
  }
  const auto removed = bucket().remove_job("0a1b-2c3d");
  ASSERT_TRUE(removed) << removed.error().message;
  for (const std::uint64_t set : {1, 2, 3}) EXPECT_FALSE(fs::exists(file(name_of(0, set)))) << set;
  for (const char* uid : {"0a1b-2c3d-2", "another"}) {
    ImageName others = name_of(0, 1);
    others.job_uid = uid;
    EXPECT_EQ(read(others), "x") << uid;
  }
  EXPECT_TRUE(bucket().remove_job("0a1b-2c3d")) << "again";
  EXPECT_TRUE(bucket().remove_job("unknown"));
  for (const char* out : {"", "..", "../another"})
    EXPECT_EQ(bucket().remove_job(out).error().code, ErrorCode::kInvalid) << out;
}

// With each of its requests refused in turn: either nothing is left, or an error says why.
TEST_F(InBucket, AJobThatCanNotBeRemovedIsNamed) {
  for (const int passed : {0, 1, 2, 3}) {
    for (const std::uint64_t set : {1, 2}) ASSERT_TRUE(store(name_of(static_cast<unsigned>(passed), set), "x"));
    proxy_->set_after(passed, Fault::kAnswers403);
    const auto removed = bucket().remove_job("0a1b-2c3d");
    proxy_->set(Fault::kNone);
    EXPECT_TRUE(passed > 0 || !removed);
    if (!removed) check_message(removed.error(), "allow the key to put, get, list and delete");
    EXPECT_TRUE(!removed || !read(name_of(static_cast<unsigned>(passed), 1))) << passed;
    ASSERT_TRUE(bucket().remove_job("0a1b-2c3d"));
  }
  location_.place = "s3://no-such-bucket/team";
  const auto none = bucket().remove_job("0a1b-2c3d");
  ASSERT_FALSE(none) << "a bucket that isn't there is no removal";
  EXPECT_THAT(none.error().message, HasSubstr("create the bucket"));
}

// By each way to store and read.
TEST_F(InBucket, AServerThatRefusesIsNamedWithTheRemedy) {
  ASSERT_TRUE(store(name_of(1), "there"));
  const std::vector<std::pair<Fault, const char*>> faults = {
      {Fault::kAnswers403, "allow the key to put, get, list and delete"},
      {Fault::kAnswers507, "lower spec.checkpoint.keep"}};
  for (const auto& [fault, remedy] : faults) {
    for (const int passed : {0, 1, 2}) {
      proxy_->set_after(passed, fault);
      const auto stored = store(name_of(2, 10 + static_cast<unsigned>(passed)), random_text(1'000'000));
      proxy_->set(Fault::kNone);
      if (stored) {
        EXPECT_GT(passed, 0);  // all of its requests had been passed on
        continue;
      }
      check_message(stored.error(), remedy);
      EXPECT_EQ(read(name_of(2, 10 + static_cast<unsigned>(passed))).error().code, ErrorCode::kNotFound);
    }
    proxy_->set(fault);
    const auto text = read(name_of(1));
    ASSERT_FALSE(text);
    check_message(text.error(), remedy);
    const auto removed = bucket().remove_sets("0a1b-2c3d", 9, {});
    ASSERT_FALSE(removed);
    check_message(removed.error(), remedy);
    proxy_->set(Fault::kNone);
    EXPECT_EQ(read(name_of(1)), "there");
  }
}

TEST_F(InBucket, AnOverloadedServerIsAskedAgain) {
  // The first answers are 503; the client's own retries get over them.
  std::thread relieved([&] {
    while (proxy_->requests() < 2) std::this_thread::sleep_for(1ms);
    proxy_->set(Fault::kNone);
  });
  proxy_->set(Fault::kAnswers503);
  const auto stored = store(name_of(1), "patience");
  relieved.join();
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(read(name_of(1)), "patience");
}

TEST_F(InBucket, AServerThatHangsIsGivenUp) {
  ASSERT_TRUE(store(name_of(1), random_text(500'000)));
  location_.patience = 2s;
  proxy_->set(Fault::kHangs);
  const auto stored = store(name_of(2), "x");
  ASSERT_FALSE(stored);
  check_message(stored.error(), "no progress within 2 s");
  const auto text = read(name_of(1));
  ASSERT_FALSE(text);
  check_message(text.error(), "no progress within 2 s");
  // In the middle.
  proxy_->set_after(2, Fault::kHangs);
  const auto half = store(name_of(3), random_text(30'000'000));
  ASSERT_FALSE(half);
  check_message(half.error(), "no progress within 2 s");
  // Whoever has no use for the result needn't wait that long.
  location_.patience = 10min;
  std::atomic<bool> given_up = false;
  std::thread other([&] {
    while (proxy_->requests() == 0) std::this_thread::sleep_for(1ms);
    given_up = true;
  });
  const Bucket bucket(location_);
  EXPECT_EQ(bucket.open(name_of(1), &given_up).error().code, ErrorCode::kUnavailable);
  other.join();
}

TEST_F(InBucket, ASlowServerIsWaitedFor) {
  proxy_->set(Fault::kSlow);
  const std::string text = random_text(1'000'000);  // 2.5 s each way at least
  const auto stored = store(name_of(1), text);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_TRUE(read(name_of(1)) == text);  // too long to be printed
}

TEST_F(InBucket, ACutBodyIsNoWholeImage) {
  const std::string text = random_text(2'000'000);
  ASSERT_TRUE(store(name_of(1), text));
  proxy_->set(Fault::kCutsBodies);
  const auto cut = read(name_of(1));
  ASSERT_FALSE(cut) << cut->size() << " bytes";
  EXPECT_THAT(cut.error().code, Not(ErrorCode::kNotFound)) << "the set may be whole";
  proxy_->set(Fault::kNone);
  EXPECT_TRUE(read(name_of(1)) == text);  // too long to be printed
}

// On the way, or in the bucket: the image itself knows.
TEST_F(InBucket, AChangedByteIsFound) {
  const std::string key(kKeyBytes, 'k'), plain = random_text(1'000'000);
  std::string sealed;
  auto sealer = Sealer::begin(key, name_of(1), plain.size(), [&](std::span<const std::byte> piece) -> Result<void> {
    sealed.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  });
  ASSERT_TRUE(sealer && sealer->add(std::as_bytes(std::span(plain))));
  const auto done = sealer->finish();
  ASSERT_TRUE(done);
  EXPECT_LE(sealed.size(), file_bytes(plain.size()));
  ASSERT_TRUE(store(name_of(1), sealed));
  const auto opened = [&]() -> Result<void> {
    BSP_TRY(const std::string text, read(name_of(1)));
    Opener opener(key, name_of(1), done->digest, [](std::span<const std::byte>) -> Result<void> { return {}; });
    BSP_CHECK_OK(opener.feed(std::as_bytes(std::span(text))));
    return opener.finish();
  };
  EXPECT_TRUE(opened());
  proxy_->set(Fault::kFlipsBodies);
  const auto flipped = opened();
  ASSERT_FALSE(flipped);
  EXPECT_THAT(flipped.error().message, HasSubstr("damaged"));
  proxy_->set(Fault::kNone);
  EXPECT_TRUE(opened());
}

// An object that is listed late is not there yet, and then it is.
TEST_F(InBucket, AnObjectThatIsListedLateIsFoundLater) {
  ASSERT_TRUE(store(name_of(1), "there"));
  const fs::path hidden = server_->directory() / "hidden";
  fs::rename(file(name_of(1)), hidden);
  EXPECT_EQ(read(name_of(1)).error().code, ErrorCode::kNotFound);
  fs::rename(hidden, file(name_of(1)));
  EXPECT_EQ(read(name_of(1)), "there");
}

TEST_F(InBucket, WrongKeysAndMissingOnesAreNamed) {
  const auto rewrite = [&](const char* key, const char* value) {
    std::ofstream(server_->directory() / "keys" / key, std::ios::trunc) << value;
  };
  rewrite("AWS_SECRET_ACCESS_KEY", "of-another");
  auto refused = store(name_of(1), "x");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("s3://sets/team at "));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("of-another")));
  rewrite("AWS_ACCESS_KEY_ID", "AKIDOFNOBODY");
  refused = store(name_of(1), "x");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, Not(HasSubstr("AKIDOFNOBODY")));
  // They are renewed while the sidecar runs.
  rewrite("AWS_ACCESS_KEY_ID", kAccessKey);
  rewrite("AWS_SECRET_ACCESS_KEY", kSecretKey);
  EXPECT_TRUE(store(name_of(1), "x"));
  fs::remove(server_->directory() / "keys" / "AWS_SECRET_ACCESS_KEY");
  refused = store(name_of(2), "x");
  ASSERT_FALSE(refused);
  check_message(refused.error(), "has no AWS_SECRET_ACCESS_KEY");
}

TEST_F(InBucket, AMissingBucketAndServerAreNamed) {
  location_.place = "s3://none/team";
  const auto missing = store(name_of(1), "x");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("create the bucket"));
  EXPECT_EQ(read(name_of(1)).error().code, ErrorCode::kFailed) << "no damage of the image";
  EXPECT_FALSE(bucket().remove_sets("0a1b-2c3d", 9, {}));
  location_ = server_->location();
  server_->stop();
  const auto away = store(name_of(1), "x");
  ASSERT_FALSE(away);
  check_message(away.error(), "start the server");
}

// The command lines of this process's children: of the clients that run now.
std::vector<std::string> clients() {
  std::vector<std::string> lines;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::stringstream status, line;
    status << std::ifstream(entry.path() / "status").rdbuf();
    line << std::ifstream(entry.path() / "cmdline").rdbuf();
    const bool child = status.str().contains(std::format("\nPPid:\t{}\n", ::getpid()));
    if (child && line.str().contains("rclone")) lines.push_back(line.str());
  }
  return lines;
}

// While it runs, the client's command line is open to whoever shares its PID namespace; its environment to its own user only.
TEST_F(InBucket, NoSecretIsInACommandLine) {
  proxy_->set(Fault::kSlow);
  const Bucket bucket(location_);
  auto image = bucket.create(name_of(1), 100);
  ASSERT_TRUE(image) << image.error().message;
  std::vector<std::string> running;  // a client that was only forked has this process's command line still
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (running.empty() && std::chrono::steady_clock::now() < deadline) running = clients();
  EXPECT_THAT(running,
              ElementsAre(AllOf(HasSubstr("0a1b-2c3d"), Not(HasSubstr(kSecretKey)), Not(HasSubstr(kAccessKey)))));
  image->reset();
  EXPECT_THAT(clients(), IsEmpty()) << "they have ended";
}

TEST(Messages, NameCauseAndRemedy) {
  const std::string where = "s3://sets at https://minio:9000";
  const auto message = [&](const char* said) { return explain_failure(where, said).message; };
  EXPECT_EQ(
      message("2026/11/29 01:00:00 ERROR : rank-0: Failed to copy: AccessDenied: Access Denied\n\tstatus code: 403, "
              "request id: 17, host id: \n"),
      "the checkpoint storage s3://sets at https://minio:9000: AccessDenied: Access Denied  status code: 403, request "
      "id: 17, host id:; allow the key to put, get, list and delete objects below the prefix");
  EXPECT_THAT(message("dial tcp: lookup minio: no such host"), HasSubstr("which pods have to resolve"));
  EXPECT_THAT(message("x509: certificate signed by unknown authority"), HasSubstr("caSecret"));
  EXPECT_THAT(message(""), HasSubstr("see whether pods reach the server"));
  EXPECT_LT(message(std::string(10'000, 'x').c_str()).size(), 600u);
}

}  // namespace
}  // namespace bsp::storage
