// Sets of a job with one rank, in a directory. The test plays the operator, the program and bsp-init.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/core/base64.h"
#include "base/core/read_file.h"
#include "crds/requests.h"
#include "sidecar/ring/ring_access.h"
#include "sidecar/transfer/capture_client.h"
#include "tests/unit/sidecar/real_sidecar.h"

namespace bsp::sidecar {

namespace fs = std::filesystem;
using wire::SavePhase;
using wire::TransferPhase;

class Checkpoint : public testing::Test {
 protected:
  Checkpoint() {
    char name[] = "/tmp/bsp-sets-XXXXXX";
    storage_ = ::mkdtemp(name);
    content_ = std::string(3'000'000, 'P') + "the end";
  }
  // Again while a sidecar that has ended still removes a set there: what vanishes meanwhile is an error.
  ~Checkpoint() override {
    for (std::error_code vanished; fs::exists(storage_);) fs::remove_all(storage_, vanished);
  }

  static wire::SaveRequest image(std::uint64_t set, char key = 'k', std::uint64_t base = 0) {
    return {.set = set, .epoch = 4, .attempt = 0, .key = base64_encode(std::string(32, key)), .base = base};
  }
  static control::Hello hello(control::Mode mode, control::ProgramState state) {
    return {.mode = mode, .uid = ::getuid(), .gid = ::getgid(), .pid = 301, .state = state};
  }
  static void stop_at_a_gate(RealSidecar& sidecar) {
    BSP_RING_STORE(sidecar.ring().state, BSP_RANK_CLOSING);
    sidecar.connect_init(hello(control::Mode::kRun, control::ProgramState::kStopped));
    sidecar.wait_until([](const wire::RankStatus& s) { return s.phase == wire::RankPhase::kStopped; });
  }
  static void wait_to_resume(RealSidecar& sidecar) {
    sidecar.connect_init(hello(control::Mode::kRestore, control::ProgramState::kWaiting));
    sidecar.wait_until([](const wire::RankStatus& s) { return s.init_connected; });
  }
  // What criu and bsp-init do.
  void dump(RealSidecar& sidecar, std::uint64_t set, bool well = true) {
    const auto asked = sidecar.heard_of<control::Dump>();
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->migration, wire::set_name(set));
    {
      auto client = transfer::CaptureClient::connect(sidecar.seat_dir(0) / "images");
      ASSERT_TRUE(client);
      const auto file = client->open_file("pages-1.img");
      ASSERT_TRUE(file);
      for (std::size_t at = 0; at < content_.size();) {
        const ssize_t n = ::write(file->get(), content_.data() + at, content_.size() - at);
        ASSERT_GT(n, 0);
        at += static_cast<std::size_t>(n);
      }
    }
    if (well)
      sidecar.say(control::Dumped{.migration = asked->migration, .ns = 1000});
    else
      sidecar.say(control::DumpFailed{.migration = asked->migration, .message = "criu was killed"});
  }
  static bool is(const wire::RankStatus& s, SavePhase phase) { return s.save && s.save->phase == phase; }
  std::string store(RealSidecar& sidecar, std::uint64_t set) { return store(sidecar, image(set)).digest; }
  wire::SaveStatus store(RealSidecar& sidecar, const wire::SaveRequest& asked) {
    EXPECT_TRUE(sidecar.ask(wire::kSave, reflect::write(asked)));
    dump(sidecar, asked.set);
    sidecar.wait_until([&](const wire::RankStatus& s) { return is(s, SavePhase::kStored) && s.save->set == asked.set; },
                       120s);
    return sidecar.status().save.value_or(wire::SaveStatus{});
  }
  // By a sidecar that is gone afterwards: there is one PMIx server in a process.
  std::string stored_by_another(std::uint64_t set) {
    RealSidecar source(1, {.place = storage_});
    stop_at_a_gate(source);
    return store(source, set);
  }
  [[nodiscard]] fs::path stored(std::uint64_t set) const {
    return fs::path(storage_) / "uid" / std::format("set-{}", set) / "rank-0";
  }

  std::string storage_, content_;
};

}  // namespace bsp::sidecar
