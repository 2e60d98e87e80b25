// The real sidecar of a job of one rank, on a loop of its own. A test plays the operator, the program (through the ring) and
// bsp-init (on the control socket).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <format>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "crds/names.h"
#include "sidecar/agent/sidecar.h"
#include "sidecar/control/messages.h"
#include "tests/unit/net/link_world.h"
#include "tests/unit/sidecar/unopenable.h"

namespace bsp::sidecar {

using namespace std::chrono_literals;
using nlohmann::json;

inline constexpr const char* kPod = "job-r0-g0";

// The real sidecar, on a loop of its own.
class RealSidecar {
 public:
  RealSidecar() : directory_(new_directory()) {
    std::filesystem::create_directories(directory_ / "run");
    const net::Credentials credentials = ca_.credentials(kPod);
    write("ca.pem", credentials.ca);
    write("cert.pem", credentials.certificate);
    write("key.pem", credentials.key);
    start();
    map_ring();
  }
  ~RealSidecar() {
    end();
    ::munmap(ring_, sizeof *ring_);
    std::filesystem::remove_all(directory_);
  }

  // As the kubelet does when it has ended. Meanwhile, `between` may change the state that it has saved.
  void restart(const std::function<void(json& state)>& between = {}) {
    end();
    if (between) {
      const std::filesystem::path path = directory_ / "run" / "sidecar" / "state";
      json state = json::parse(std::ifstream(path));
      between(state);
      std::ofstream(path) << state;
    }
    start();
  }

  // Ends it, and returns why the next one doesn't start while this file can't be opened; then starts it.
  std::string reason_without(const char* file) {
    end();
    std::string reason;
    {
      const Unopenable held(directory_ / "run" / file);
      net::Loop loop;
      if (auto started = Sidecar::start(loop, config()); !started) reason = started.error().message;
    }
    start();
    return reason;
  }

  Result<json> ask(const char* verb, const json& fields) {
    return link_->call(verb, fields, 10s).transform([](const net::Answer& answer) { return answer.header; });
  }
  wire::RankStatus status() { return wire::rank_status_from_json(ask(wire::kStatus, json::object()).value()).value(); }
  bsp_ring& ring() { return *ring_; }

  void connect_init(const control::Hello& hello) {
    init_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ / "run" / "control";
    std::memcpy(address.sun_path, path.c_str(), path.size());
    ASSERT_EQ(::connect(init_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << path;
    say(hello);
  }
  template <class T>
  void say(const T& message) {
    ASSERT_TRUE(control::send(init_.get(), control::packet_of(message)));
  }
  // What was said on the control socket takes its way.
  void wait_until(const std::function<bool(const wire::RankStatus&)>& holds, std::chrono::seconds most = 30s) {
    const auto limit = std::chrono::steady_clock::now() + most;
    while (!holds(status())) ASSERT_LT(std::chrono::steady_clock::now(), limit) << json(status()).dump();
  }

 private:
  Config config() const {
    return {.job = "job",
            .job_uid = "uid",
            .rank = 0,
            .ranks = 1,
            .pod = kPod,
            .listen = "127.0.0.1:0",
            .liveness = "",
            .tls_dir = directory_,
            .run_dir = directory_ / "run"};
  }
  void start() {
    loop_ = std::make_unique<net::Loop>();
    sidecar_ = Sidecar::start(*loop_, config()).value();
    thread_ = std::thread([this] { loop_->run(); });
    link_ = std::make_unique<net::Link>(ca_.context(std::string(names::kOperatorIdentity)),
                                        net::Peer{std::format("127.0.0.1:{}", sidecar_->port()), kPod});
  }
  void end() {
    link_.reset();
    init_.reset();
    loop_->stop();
    thread_.join();
    sidecar_.reset();
    loop_.reset();  // with what the sidecar has left in it
  }
  // PMIx sets TMPDIR for its own use.
  static std::filesystem::path new_directory() {
    char name[] = "/tmp/bsp-simulated-XXXXXX";
    return ::mkdtemp(name);
  }
  void write(const char* name, const std::string& text) { std::ofstream(directory_ / name) << text; }
  void map_ring() {
    const Fd file(::open((directory_ / "run" / "ring").c_str(), O_RDWR | O_CLOEXEC));
    ring_ = static_cast<bsp_ring*>(::mmap(nullptr, sizeof *ring_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  }

  std::filesystem::path directory_;
  net::Ca ca_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<Sidecar> sidecar_;
  bsp_ring* ring_ = nullptr;
  std::thread thread_;
  std::unique_ptr<net::Link> link_;
  Fd init_;
};

}  // namespace bsp::sidecar
