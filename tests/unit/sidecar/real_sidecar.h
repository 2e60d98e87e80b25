// The real sidecar of a job with one pod, on a loop of its own. A test plays the operator, the program (through the ring) and
// bsp-init (on the control socket).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
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
#include <numeric>
#include <string>
#include <thread>
#include <variant>
#include <vector>

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
  // Each seat has the rank of its number. `storage`: of checkpoint sets.
  explicit RealSidecar(std::uint32_t seats = 1, storage::Location storage = {})
      : seats_(seats), storage_(std::move(storage)), directory_(new_directory()), rings_(seats), inits_(seats) {
    std::filesystem::create_directories(directory_ / "run");
    const net::Credentials credentials = ca_.credentials(kPod);
    write("ca.pem", credentials.ca);
    write("cert.pem", credentials.certificate);
    write("key.pem", credentials.key);
    start();
    for (std::uint32_t seat = 0; seat < seats_; ++seat) map_ring(seat);
  }
  ~RealSidecar() {
    end();
    for (bsp_ring* ring : rings_) ::munmap(ring, sizeof *ring);
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
  wire::RankStatus status(std::uint32_t seat = 0) {
    const json fields = seat == 0 ? json::object() : json{{wire::kSeat, seat}};
    return wire::rank_status_from_json(ask(wire::kStatus, fields).value()).value();
  }
  bsp_ring& ring(std::uint32_t seat = 0) { return *rings_[seat]; }
  // The key of an exported set, as the kubelet mounts it.
  void give_key(const std::string& key) const { write("key", key); }
  // What the seat's program finds in its /run/bsp.
  [[nodiscard]] std::filesystem::path seat_dir(std::uint32_t seat) const {
    return seats_ == 1 ? directory_ / "run" : directory_ / "run" / std::format("seat-{}", seat);
  }

  void connect_init(const control::Hello& hello, std::uint32_t seat = 0) {
    Fd& init = inits_[seat];
    init = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = seat_dir(seat) / "control";
    std::memcpy(address.sun_path, path.c_str(), path.size());
    ASSERT_EQ(::connect(init.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << path;
    say(hello, seat);
  }
  template <class T>
  void say(const T& message, std::uint32_t seat = 0) {
    ASSERT_TRUE(control::send(inits_[seat].get(), control::packet_of(message)));
  }
  // The next message to bsp-init except `fresh`; nothing within 30 s fails the test.
  control::ToInit heard(std::uint32_t seat) {
    for (;;) {
      pollfd entry{.fd = inits_[seat].get(), .events = POLLIN, .revents = 0};
      if (::poll(&entry, 1, 30'000) <= 0) {
        ADD_FAILURE() << "bsp-init of seat " << seat << " hears nothing";
        return control::Bye{};
      }
      const auto packet = control::receive(inits_[seat].get());
      if (!packet) {
        ADD_FAILURE() << packet.error().message;
        return control::Bye{};
      }
      if (auto message = control::to_init(*packet); message && !std::holds_alternative<control::Fresh>(*message))
        return *message;
    }
  }
  // The verbs that bsp-init has been sent since then, but for `fresh`. What a request causes is sent before its answer.
  std::vector<std::string> heard_since(std::uint32_t seat) {
    std::vector<std::string> verbs;
    for (pollfd entry{.fd = inits_[seat].get(), .events = POLLIN, .revents = 0}; ::poll(&entry, 1, 0) > 0;) {
      const auto packet = control::receive(inits_[seat].get());
      if (!packet) break;
      if (packet->verb != control::Fresh::kVerb) verbs.push_back(packet->verb);
    }
    return verbs;
  }
  // The next message of this kind from the sidecar; others are left out.
  template <class T>
  T hear() {
    for (;;) {
      const auto packet = control::receive(inits_[0].get());
      if (!packet) {
        ADD_FAILURE() << packet.error().message;
        return {};
      }
      if (packet->verb == T::kVerb) return control::from_packet<T>(*packet);
    }
  }
  [[nodiscard]] CpuFeatures machine() const { return config().cpu_features; }
  // The next message of that kind to bsp-init; nullopt: there was none.
  template <class T>
  std::optional<T> heard_of(std::chrono::seconds most = 30s) {
    const auto limit = std::chrono::steady_clock::now() + most;
    while (std::chrono::steady_clock::now() < limit) {
      pollfd entry{.fd = inits_[0].get(), .events = POLLIN, .revents = 0};
      if (::poll(&entry, 1, 100) <= 0) continue;
      const auto packet = control::receive(inits_[0].get());
      if (!packet) return std::nullopt;
      const auto message = control::to_init(*packet);
      if (message && std::holds_alternative<T>(*message)) return std::get<T>(*message);
    }
    return std::nullopt;
  }
  // What was said on the control socket takes its way.
  void wait_until(const std::function<bool(const wire::RankStatus&)>& holds, std::chrono::seconds most = 30s,
                  std::uint32_t seat = 0) {
    const auto limit = std::chrono::steady_clock::now() + most;
    while (!holds(status(seat))) ASSERT_LT(std::chrono::steady_clock::now(), limit) << json(status(seat)).dump();
  }

 private:
  Config config() const {
    std::vector<std::uint32_t> ranks(seats_);
    std::iota(ranks.begin(), ranks.end(), 0u);
    return {.job = "job",
            .job_uid = "uid",
            .seats = ranks,
            .ranks = seats_,
            .pod = kPod,
            .listen = "127.0.0.1:0",
            .liveness = "",
            .tls_dir = directory_,
            .run_dir = directory_ / "run",
            .cpu_features = *CpuFeatures::from_names("pni,avx,avx2"),
            .runtime = "aabb",
            .storage = storage_,
            .set_key = directory_ / "key"};
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
    for (Fd& init : inits_) init.reset();
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
  void write(const char* name, const std::string& text) const { std::ofstream(directory_ / name) << text; }
  void map_ring(std::uint32_t seat) {
    const Fd file(::open((seat_dir(seat) / "ring").c_str(), O_RDWR | O_CLOEXEC));
    rings_[seat] =
        static_cast<bsp_ring*>(::mmap(nullptr, sizeof(bsp_ring), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  }

  const std::uint32_t seats_;
  const storage::Location storage_;
  std::filesystem::path directory_;
  net::Ca ca_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<Sidecar> sidecar_;
  std::vector<bsp_ring*> rings_;  // by seat
  std::thread thread_;
  std::unique_ptr<net::Link> link_;
  std::vector<Fd> inits_;  // by seat
};

}  // namespace bsp::sidecar
