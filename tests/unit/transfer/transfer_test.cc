// Capture to receiver over memory: what arrives is what was sent, and anything else is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "base/core/read_file.h"
#include "sidecar/transfer/capture_client.h"
#include "sidecar/transfer/frames.h"
#include "sidecar/transfer/stream.h"

namespace bsp::transfer {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;
using Files = std::map<std::string, std::string>;

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

class Transfer : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/bsp-transfer-XXXXXX";
    dir_ = ::mkdtemp(name);
    ::signal(SIGPIPE, SIG_IGN);  // as the supervisor: the relay may close a refused file before it is written
  }
  void TearDown() override { fs::remove_all(dir_); }

  // Plays criu: several files open at once over one connection, then a verdict.
  Bytes capture(const Files& files, bool success = true, Result<Totals>* result = nullptr) {
    auto session = CaptureSession::open(dir_ + "/source", "m");
    if (!session) throw std::runtime_error(session.error().message);
    Bytes stream;
    Result<Totals> totals;
    std::thread relay([&] {
      totals = (*session)->run([&](std::span<const std::byte> bytes) -> Result<void> {
        stream.insert(stream.end(), bytes.begin(), bytes.end());
        return {};
      });
    });
    {
      auto client = CaptureClient::connect(dir_ + "/source");
      std::vector<std::pair<Fd, const std::string*>> open;
      for (const auto& [name, content] : files) {
        open.emplace_back(std::move(*client->open_file(name)), &content);
      }
      for (auto& [pipe, content] : open) write_all(pipe.get(), *content);
    }
    if (success) {
      (*session)->finish();
    } else {
      (*session)->abort("criu dump failed: nothing works");
    }
    relay.join();
    if (result != nullptr) *result = totals;
    return stream;
  }

  Result<bool> receive(const Bytes& stream, std::size_t piece = 1 << 16, const char* migration = "m") {
    auto receiver = Receiver::open(dir_ + "/target", migration);
    if (!receiver) return std::unexpected(receiver.error());
    Result<bool> done = false;
    for (std::size_t at = 0; at < stream.size() && done; at += piece) {
      done = (*receiver)->feed(std::span(stream).subspan(at, std::min(piece, stream.size() - at)));
    }
    return done;
  }

  std::string received(const std::string& name) { return read_file(dir_ + "/target/m/" + name).value_or("<none>"); }

  std::string dir_;
};

std::string random_text(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

const Files kFiles{{"pages-1.img", random_text(700'001)},
                   {"core-1000.img", random_text(900)},
                   {"empty.img", ""},
                   {"inventory.img", "x"}};

TEST_F(Transfer, EveryFileArrives) {
  Result<Totals> totals;
  const Bytes stream = capture(kFiles, true, &totals);
  ASSERT_TRUE(totals) << totals.error().message;
  EXPECT_EQ(totals->files, 4U);
  EXPECT_EQ(totals->bytes, 700'902U);
  const auto done = receive(stream);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(*done);
  for (const auto& [name, content] : kFiles) EXPECT_TRUE(received(name) == content) << name;
}

TEST_F(Transfer, InPiecesOfAnySize) {
  const Bytes stream = capture({{"a", random_text(3000)}, {"b", "bb"}});
  for (const std::size_t piece : {1UL, 2UL, 7UL, 13UL, 1000UL, stream.size()}) {
    ASSERT_TRUE(remove_checkpoint(dir_ + "/target", "m"));
    const auto done = receive(stream, piece);
    ASSERT_TRUE(done) << piece << ": " << done.error().message;
    EXPECT_TRUE(*done) << piece;
    EXPECT_EQ(received("b"), "bb");
  }
}

TEST_F(Transfer, NothingIsPublishedBeforeTheEnd) {
  const Bytes stream = capture(kFiles);
  auto receiver = Receiver::open(dir_ + "/target", "m");
  ASSERT_TRUE(receiver);
  const auto done = (*receiver)->feed(std::span(stream).first(stream.size() - 1));
  ASSERT_TRUE(done);
  EXPECT_FALSE(*done);
  EXPECT_FALSE(fs::exists(dir_ + "/target/m"));
  receiver->reset();
  EXPECT_TRUE(fs::is_empty(dir_ + "/target"));
}

// Every byte matters: a flipped bit anywhere, a lost or duplicated frame, a truncation are all refused.
TEST_F(Transfer, AnyFlippedBitIsDetected) {
  const Bytes good = capture({{"a", random_text(200)}, {"b", "bb"}});
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes bad = good;
    bad[at] ^= std::byte{1};
    const auto done = receive(bad);
    ASSERT_FALSE(done && *done) << "byte " << at;
    ASSERT_FALSE(fs::exists(dir_ + "/target/m")) << "byte " << at;
  }
}

std::vector<std::pair<std::size_t, std::size_t>> frames_of(const Bytes& stream) {
  std::vector<std::pair<std::size_t, std::size_t>> frames;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t size = kHeaderBytes + get_header(&stream[at]).length;
    frames.emplace_back(at, size);
    at += size;
  }
  return frames;
}

TEST_F(Transfer, LostDuplicatedAndSwappedFramesAreRefused) {
  const Bytes good = capture({{"a", random_text(200)}, {"b", "bb"}});
  const auto frames = frames_of(good);
  ASSERT_GE(frames.size(), 8U);
  const auto slice = [&](std::size_t i) {
    const auto start = good.begin() + static_cast<std::ptrdiff_t>(frames[i].first);
    return Bytes(start, start + static_cast<std::ptrdiff_t>(frames[i].second));
  };
  for (std::size_t victim = 0; victim < frames.size(); ++victim) {
    for (const char* what : {"lost", "doubled", "swapped"}) {
      Bytes bad;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        std::size_t which = i;
        if (what[0] == 's' && victim + 1 < frames.size()) {
          which = i == victim ? victim + 1 : i == victim + 1 ? victim : i;
        }
        if (what[0] == 'l' && i == victim) continue;
        const Bytes frame = slice(which);
        bad.insert(bad.end(), frame.begin(), frame.end());
        if (what[0] == 'd' && i == victim) bad.insert(bad.end(), frame.begin(), frame.end());
      }
      if (bad == good) continue;
      const auto done = receive(bad);
      // A duplicated End follows a complete stream: the checkpoint is valid, the rest is refused.
      if (what[0] == 'd' && victim + 1 == frames.size()) {
        EXPECT_FALSE(done);
        ASSERT_TRUE(remove_checkpoint(dir_ + "/target", "m"));
        continue;
      }
      EXPECT_FALSE(done && *done) << what << " frame " << victim;
    }
  }
}

TEST_F(Transfer, WrongMigrationIsRefused) {
  const auto done = receive(capture({{"a", "a"}}), 100, "other");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kRefused);
  EXPECT_THAT(done.error().message, HasSubstr("belongs to migration 'm', not to 'other'"));
}

TEST_F(Transfer, ReceivedOnce) {
  const Bytes stream = capture({{"a", "a"}});
  ASSERT_TRUE(receive(stream));
  const auto again = receive(stream);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  ASSERT_TRUE(remove_checkpoint(dir_ + "/target", "m"));
  EXPECT_TRUE(receive(stream));
}

TEST_F(Transfer, FailedDumpReportsItsReason) {
  Result<Totals> totals;
  const Bytes stream = capture({{"a", random_text(100)}}, false, &totals);
  ASSERT_FALSE(totals);
  const auto done = receive(stream);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("the source aborted: criu dump failed: nothing works"));
}

TEST_F(Transfer, EmptyDumpIsAnError) {
  auto session = CaptureSession::open(dir_ + "/source", "m");
  ASSERT_TRUE(session);
  (*session)->finish();
  EXPECT_FALSE((*session)->run([](auto) -> Result<void> { return {}; }));
}

TEST_F(Transfer, FailingSinkEndsTheWriters) {
  auto session = CaptureSession::open(dir_ + "/source", "m");
  ASSERT_TRUE(session);
  std::thread relay([&] {
    const auto totals = (*session)->run([n = 0](auto) mutable -> Result<void> {
      if (++n > 3) return fail(ErrorCode::kUnavailable, "gone");
      return {};
    });
    EXPECT_EQ(totals.error().message, "gone");
  });
  auto client = CaptureClient::connect(dir_ + "/source");
  ASSERT_TRUE(client);
  auto pipe = client->open_file("pages-1.img");
  ASSERT_TRUE(pipe);
  const std::string block(100'000, 'x');
  ssize_t n = 0;
  while ((n = ::write(pipe->get(), block.data(), block.size())) > 0) {
  }
  EXPECT_EQ(errno, EPIPE);
  relay.join();
  EXPECT_FALSE(CaptureClient::connect(dir_ + "/source"));
}

TEST_F(Transfer, DuplicateFileOrPathIsRefused) {
  for (const char* second : {"a", "../b", "sub/b", ".hidden"}) {
    auto session = CaptureSession::open(dir_ + "/source", "m");
    ASSERT_TRUE(session);
    Result<Totals> totals;
    std::thread relay([&] { totals = (*session)->run([](auto) -> Result<void> { return {}; }); });
    auto client = CaptureClient::connect(dir_ + "/source");
    ASSERT_TRUE(client);
    (void)client->send_file("a", "1");
    (void)client->send_file(second, "2");
    relay.join();
    ASSERT_FALSE(totals) << second;
    EXPECT_EQ(totals.error().code, ErrorCode::kRefused);
  }
}

TEST(MigrationNames, AreDirectoryNames) {
  EXPECT_TRUE(valid_migration("lbm-r3-e5.x_Y"));
  for (const char* bad : {"", ".", "..", ".x", "a/b", "a b", "ä"}) EXPECT_FALSE(valid_migration(bad)) << bad;
}

}  // namespace
}  // namespace bsp::transfer
