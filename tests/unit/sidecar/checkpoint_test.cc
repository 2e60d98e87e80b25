// A rank's image from memory into the storage and back, by real sidecars. The test plays the operator, the program and bsp-init.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/sidecar/checkpoint.h"

namespace bsp::sidecar {
namespace {

using ::testing::HasSubstr;

TEST_F(Checkpoint, IsStoredAndRestoredElsewhere) {
  std::string digest;
  {
    RealSidecar source(1, {.place = storage_});
    stop_at_a_gate(source);
    digest = store(source, 1);
    const auto save = *source.status().save;
    EXPECT_GT(save.bytes, content_.size());
    EXPECT_EQ(save.dump_ns, 1000u);
    EXPECT_GT(save.store_ns, 0u);
    EXPECT_EQ(source.status().phase, wire::RankPhase::kStopped) << "only openEpoch continues it";
    // Asked again, it has it.
    EXPECT_TRUE(source.ask(wire::kSave, reflect::write(image(1))));
    EXPECT_EQ(source.status().save, save);
  }
  const std::string file = read_file(stored(1)).value();
  EXPECT_EQ(file.find("PPPP"), std::string::npos);
  EXPECT_EQ(file.find("pages-1"), std::string::npos);

  RealSidecar target(1, {.place = storage_});
  wait_to_resume(target);
  EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
  const auto restore = target.heard_of<control::Restore>();
  ASSERT_TRUE(restore) << json(target.status()).dump();
  EXPECT_EQ(restore->migration, "set-1");
  EXPECT_EQ(read_file(target.seat_dir(0) / "images" / "set-1" / "pages-1.img").value(), content_);
  target.say(control::Restored{.migration = "set-1", .pid = 301, .ns = 5});
  target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kRestored; });
  EXPECT_EQ(target.status().phase, wire::RankPhase::kStopped);
}

// Only when the operator says that every rank has accepted the set, and it takes part only once they are cut.
TEST_F(Checkpoint, SharedFilesThatAreAheadAreCutWhenAsked) {
  const std::string digest = stored_by_another(1);
  RealSidecar target(1, {.place = storage_});
  wait_to_resume(target);
  EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
  ASSERT_TRUE(target.heard_of<control::Restore>());
  target.say(control::Restored{.migration = "set-1", .pid = 301, .ns = 5, .ahead = 1});
  target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kReceived; });
  EXPECT_FALSE(target.heard_of<control::Restore>(1s)) << "not by itself";
  // Neither does a sidecar that was restarted forget it.
  target.restart();
  control::Hello again = hello(control::Mode::kRestore, control::ProgramState::kRestored);
  again.migration = "set-1";
  again.ahead = 1;
  target.connect_init(again);
  target.wait_until([](const wire::RankStatus& s) { return s.init_connected; });
  EXPECT_EQ(target.status().transfer.phase, TransferPhase::kReceived);
  EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
  const auto cut = target.heard_of<control::Restore>();
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->cut, 1);
  target.say(control::Restored{.migration = "set-1", .pid = 301, .ns = 5, .note = "cut off"});
  target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kRestored; });
  EXPECT_EQ(target.status().transfer.note, "cut off");
  EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
  EXPECT_EQ(target.status().transfer.phase, TransferPhase::kRestored) << "asked again, it has done it";
}

TEST_F(Checkpoint, OfADamagedImageNothingIsRestored) {
  const std::string digest = stored_by_another(1);
  const std::string whole = read_file(stored(1)).value();
  const std::vector<std::pair<const char*, std::string>> damages = {
      {"flipped", std::string(whole).replace(whole.size() / 2, 1, 1, static_cast<char>(whole[whole.size() / 2] ^ 1))},
      {"truncated", whole.substr(0, whole.size() - 100'000)},
      {"longer", whole + "x"},
      {"empty", ""}};
  for (const auto& [what, content] : damages) {
    std::ofstream(stored(1), std::ios::binary) << content;
    RealSidecar target(1, {.place = storage_});
    wait_to_resume(target);
    EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
    target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kFailed; });
    EXPECT_TRUE(target.status().transfer.unusable) << what;
    EXPECT_THAT(target.status().transfer.error, HasSubstr("damaged")) << what;
    EXPECT_FALSE(target.heard_of<control::Restore>(1s)) << what;
    EXPECT_TRUE(fs::is_empty(target.seat_dir(0) / "images")) << what;
  }
}

// Trying again won't help if it was refused, may help if the image is to blame only here, and will after an accident.
TEST_F(Checkpoint, WhatARestoreFailsByIsTold) {
  const std::string digest = stored_by_another(1);
  using control::RestoreCause;
  for (const std::optional cause :
       {std::optional(RestoreCause::kRefused), std::optional(RestoreCause::kImage), std::optional<RestoreCause>()}) {
    RealSidecar target(1, {.place = storage_});
    wait_to_resume(target);
    const auto load = [&] {
      EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
      EXPECT_TRUE(target.heard_of<control::Restore>(60s));
    };
    load();
    target.say(control::RestoreFailed{.migration = "set-1", .message = "no luck", .cause = cause});
    target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kFailed; });
    EXPECT_EQ(target.status().transfer.unusable, cause == RestoreCause::kRefused);
    EXPECT_EQ(target.status().transfer.suspect, cause == RestoreCause::kImage);
    if (cause) continue;
    // Asked again any number of times, it tries once more, after a while.
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
    load();
    target.say(control::Restored{.migration = "set-1", .pid = 301, .ns = 5});
    target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kRestored; });
  }
}

// As a hostPath where nothing is mounted on this node.
TEST_F(Checkpoint, AnotherVolumeIsNoDamage) {
  const std::string digest = stored_by_another(1), empty = storage_ + "/empty";
  fs::create_directory(empty);
  RealSidecar target(1, {.place = empty});
  wait_to_resume(target);
  EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
  target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kFailed; });
  EXPECT_FALSE(target.status().transfer.unusable);
  EXPECT_FALSE(target.status().transfer.suspect);
  EXPECT_THAT(target.status().transfer.error, HasSubstr("is its volume mounted on this node?"));
  // Once it is, the rank goes on.
  fs::create_directories(fs::path(empty) / "uid" / "set-1");
  fs::copy_file(stored(1), fs::path(empty) / "uid" / "set-1" / "rank-0");
  EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{image(1), digest})));
  EXPECT_TRUE(target.heard_of<control::Restore>(60s));
}

TEST_F(Checkpoint, OfAnotherSetOrKeyIsRefused) {
  const std::string digest = stored_by_another(1);
  fs::create_directories(stored(2).parent_path());
  fs::copy_file(stored(1), stored(2));
  for (const wire::SaveRequest& asked : {image(2), image(1, 'x')}) {
    RealSidecar target(1, {.place = storage_});
    wait_to_resume(target);
    EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{asked, digest})));
    target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kFailed; });
    EXPECT_TRUE(target.status().transfer.unusable);
  }
}

// The operator has no key of it: a Secret gives it to the pod.
TEST_F(Checkpoint, OfAnExportedSetThePodHasTheKey) {
  const std::string digest = stored_by_another(1);
  fs::create_directories(fs::path(storage_) / "other" / "set-1");
  fs::copy_file(stored(1), fs::path(storage_) / "other" / "set-1" / "rank-0");
  wire::SaveRequest keyless = image(1);
  keyless.key = "";
  keyless.job = "uid";  // this pod's own in the test; the job names it
  struct Case {
    const char* what;
    std::optional<std::string> key;
    std::string job, trouble;
  };
  for (const Case& one :
       {Case{"none", std::nullopt, "uid", "spec.restoreFrom.keySecret must have a key of 32 bytes"},
        Case{"short", std::string(31, 'k'), "uid", "it has 31"}, Case{"long", std::string(33, 'k'), "uid", "it has 33"},
        Case{"text", base64_encode(std::string(32, 'k')), "uid", "it has 44"},
        Case{"wrong", std::string(32, 'x'), "uid", "damaged"},
        Case{"of another owner", std::string(32, 'k'), "other", "not of rank 0 of 1 in set 1 of job other"},
        Case{"outside", std::string(32, 'k'), "../uid", "unusable as a directory's name"},
        Case{"right", std::string(32, 'k'), "uid", ""}}) {
    RealSidecar target(1, {.place = storage_});
    if (one.key) target.give_key(*one.key);
    wait_to_resume(target);
    keyless.job = one.job;
    EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{keyless, digest}))) << one.what;
    if (one.trouble.empty()) {
      EXPECT_TRUE(target.heard_of<control::Restore>()) << json(target.status()).dump();
      continue;
    }
    target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kFailed; });
    EXPECT_TRUE(target.status().transfer.unusable) << one.what;
    EXPECT_THAT(target.status().transfer.error, HasSubstr(one.trouble)) << one.what;
    EXPECT_FALSE(target.heard_of<control::Restore>(1s)) << one.what;
  }
}

TEST_F(Checkpoint, AFailedDumpIsReported) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  EXPECT_TRUE(source.ask(wire::kSave, reflect::write(image(1))));
  dump(source, 1, false);
  source.wait_until([](const wire::RankStatus& s) { return is(s, SavePhase::kFailed); });
  EXPECT_THAT(source.status().save->error, HasSubstr("criu was killed"));
  EXPECT_FALSE(fs::exists(stored(1)));
  store(source, 2);
}

TEST_F(Checkpoint, AStorageThatCantBeWrittenIsReportedAfterTheDump) {
  RealSidecar source(1, {.place = storage_ + "/none"});
  stop_at_a_gate(source);
  EXPECT_TRUE(source.ask(wire::kSave, reflect::write(image(1))));
  dump(source, 1);
  source.wait_until([](const wire::RankStatus& s) { return is(s, SavePhase::kFailed); });
  EXPECT_GT(source.status().save->bytes, 0u) << "the rank had nothing to wait for";
  EXPECT_THAT(source.status().save->error, HasSubstr(storage_ + "/none"));
}

TEST_F(Checkpoint, AnImageIsNeverReplaced) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  fs::create_directories(stored(1).parent_path());
  std::ofstream(stored(1)) << "older";
  EXPECT_TRUE(source.ask(wire::kSave, reflect::write(image(1))));
  dump(source, 1);
  source.wait_until([](const wire::RankStatus& s) { return is(s, SavePhase::kFailed); });
  EXPECT_EQ(read_file(stored(1)).value(), "older");
}

TEST_F(Checkpoint, OlderSetsAreRemoved) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  for (const std::uint64_t set : {1, 2, 3}) store(source, set);
  // None builds on another.
  EXPECT_TRUE(source.ask(wire::kKeepSets, reflect::write(wire::KeepSetsRequest{.below = 3, .keep = {2, 3}})));
  const auto limit = std::chrono::steady_clock::now() + 30s;
  while (fs::exists(stored(1)) && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(fs::exists(stored(1)));
  EXPECT_TRUE(fs::exists(stored(2)) && fs::exists(stored(3)));
}

TEST_F(Checkpoint, WhatGoneJobsHaveLeftIsRemoved) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  store(source, 1);
  const auto leave = [&](const std::string& uid, const std::string& owner) {
    fs::create_directories(fs::path(storage_) / uid / "set-1");
    std::ofstream(fs::path(storage_) / uid / ("of-" + owner)) << "\n";
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
    for (const auto& entry : fs::directory_iterator(fs::path(storage_) / uid)) fs::last_write_time(entry.path(), old);
    fs::last_write_time(fs::path(storage_) / uid, old);
  };
  leave("gone", "us");
  leave("known", "us");
  leave("others", "them");
  wire::KeepSetsRequest asked{
      .below = 2, .keep = {1}, .bases = {}, .owner = "us", .jobs = {"known"}, .orphan_seconds = 3600};
  const auto ask = [&] {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!source.ask(wire::kKeepSets, reflect::write(asked)) && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(10ms);
  };
  const auto comes = [&](const std::function<bool()>& what) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!what() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(10ms);
    return what();
  };
  const fs::path root = storage_;
  ask();
  EXPECT_TRUE(comes([&] { return !fs::exists(root / "gone"); }));
  EXPECT_TRUE(fs::exists(root / "known") && fs::exists(root / "others") && fs::exists(stored(1)));
  EXPECT_TRUE(fs::exists(root / "uid" / "of-us"));
  asked.retain = true;
  ask();
  EXPECT_TRUE(comes([&] { return !fs::exists(root / "uid" / "of-us"); })) << "its sets stay after it";
}

TEST_F(Checkpoint, WithoutStorageIsRefused) {
  RealSidecar source;
  stop_at_a_gate(source);
  const auto refused = source.ask(wire::kSave, reflect::write(image(1)));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("spec.checkpoint.storage"));
}

TEST_F(Checkpoint, WithoutKeyIsRefused) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  wire::SaveRequest keyless = image(1);
  keyless.key = "";
  EXPECT_EQ(source.ask(wire::kSave, reflect::write(keyless)).error().code, ErrorCode::kInvalid);
}

TEST_F(Checkpoint, OfARunningProgramIsRefused) {
  RealSidecar source(1, {.place = storage_});
  BSP_RING_STORE(source.ring().state, BSP_RANK_RUNNING);
  source.connect_init(hello(control::Mode::kRun, control::ProgramState::kRunning));
  source.wait_until([](const wire::RankStatus& s) { return s.init_connected; });
  EXPECT_EQ(source.ask(wire::kSave, reflect::write(image(1))).error().code, ErrorCode::kConflict);
}

}  // namespace
}  // namespace bsp::sidecar
