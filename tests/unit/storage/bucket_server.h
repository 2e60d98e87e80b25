// A real S3 server (versitygw, on files in a directory) at a free port of 127.0.0.1, with the bucket "sets", and a proxy in front
// of it that does what storage does on a bad day.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/core/fd.h"
#include "sidecar/storage/storage.h"

namespace bsp::storage {

inline constexpr const char* kAccessKey = "AKIDBSPTEST";
inline constexpr const char* kSecretKey = "s3cr3t-of-the-bucket";

class BucketServer {
 public:
  // False: versitygw or rclone isn't on this machine; the test says so and is skipped.
  static bool can_run();

  BucketServer();
  ~BucketServer();
  BucketServer(const BucketServer&) = delete;
  BucketServer& operator=(const BucketServer&) = delete;

  void stop();  // as a power cut does
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // The bucket below that prefix, through the server at `port` (0: this one itself).
  [[nodiscard]] Location location(std::uint16_t port = 0, const std::string& prefix = "team") const;
  // Where the server keeps the bucket's objects, each as a file.
  [[nodiscard]] std::filesystem::path files() const { return directory_ / "data" / "sets"; }
  [[nodiscard]] std::filesystem::path directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

class FaultyProxy {
 public:
  enum class Fault {
    kNone,
    kAnswers503,  // to every request
    kAnswers403,
    kAnswers507,
    kHangs,        // takes requests, and never answers
    kCutsBodies,   // ends a response in the middle of its body
    kFlipsBodies,  // changes a byte of a response's body
    kSlow,         // a hundredth of a second for each 4 KiB
  };
  explicit FaultyProxy(std::uint16_t to);
  ~FaultyProxy();
  FaultyProxy(const FaultyProxy&) = delete;
  FaultyProxy& operator=(const FaultyProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  void set(Fault fault) { state_->fault = fault; }
  // So many requests are passed on first.
  void set_after(int requests, Fault fault) {
    state_->passed = requests;
    state_->fault = fault;
  }
  [[nodiscard]] int requests() const { return state_->requests; }

 private:
  struct State {
    std::atomic<Fault> fault = Fault::kNone;
    std::atomic<int> passed = 0, requests = 0;
    std::atomic<bool> ends = false;
  };
  static void serve(const std::shared_ptr<State>& state, Fd client, std::uint16_t to);

  std::uint16_t port_ = 0;
  Fd listener_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace bsp::storage
