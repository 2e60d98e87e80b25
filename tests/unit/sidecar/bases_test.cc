// Images that leave out what the rank's image in their group's first set holds, by real sidecars.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/unit/sidecar/checkpoint.h"

namespace bsp::sidecar {
namespace {

using ::testing::HasSubstr;

class Bases : public Checkpoint {
 protected:
  Bases() { content_ = random_text(2'400'000, 1); }

  static std::string random_text(std::size_t size, unsigned seed) {
    std::mt19937_64 random(seed);
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  }
  // A tenth of the program's memory, at another place each time.
  void compute(unsigned step) { content_.replace(200'000 * step, 240'000, random_text(240'000, 100 + step)); }

  static wire::SaveRequest on(std::uint64_t set, std::uint64_t base) {
    return image(set, static_cast<char>('a' + set), base);
  }
  [[nodiscard]] std::uintmax_t size(std::uint64_t set) const { return fs::file_size(stored(set)); }

  // The whole way back, by a sidecar that has seen none of it.
  void expect_restored(const wire::SaveRequest& of, const wire::SaveStatus& save, const std::string& content) {
    RealSidecar target(1, {.place = storage_});
    wait_to_resume(target);
    wire::SaveRequest asked = of;
    asked.base = 0;  // nobody tells it
    EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{asked, save.digest})));
    const auto restore = target.heard_of<control::Restore>();
    ASSERT_TRUE(restore) << json(target.status()).dump();
    const auto pages = read_file(target.seat_dir(0) / "images" / wire::set_name(of.set) / "pages-1.img");
    EXPECT_TRUE(pages && *pages == content);
  }
  // Nothing of it reaches a program.
  void expect_refused(const wire::SaveRequest& of, const wire::SaveStatus& save, const std::string& why) {
    RealSidecar target(1, {.place = storage_});
    wait_to_resume(target);
    EXPECT_TRUE(target.ask(wire::kLoad, reflect::write(wire::LoadRequest{of, save.digest})));
    target.wait_until([](const wire::RankStatus& s) { return s.transfer.phase == TransferPhase::kFailed; }, 120s);
    EXPECT_TRUE(target.status().transfer.unusable) << why;
    EXPECT_THAT(target.status().transfer.error, HasSubstr(why));
    EXPECT_FALSE(target.heard_of<control::Restore>(1s));
    EXPECT_TRUE(fs::is_empty(target.seat_dir(0) / "images"));
  }
};

TEST_F(Bases, AChangedTenthTakesAQuarterAtMost) {
  std::vector<std::pair<wire::SaveStatus, std::string>> sets;
  {
    RealSidecar source(1, {.place = storage_});
    stop_at_a_gate(source);
    for (std::uint64_t set = 1; set <= 4; ++set) {
      sets.emplace_back(store(source, on(set, set == 1 ? 0 : 1)), content_);
      EXPECT_EQ(sets.back().first.base, set == 1 ? 0u : 1u);
      EXPECT_EQ(sets.back().first.stored, size(set));
      EXPECT_GT(sets.back().first.bytes, content_.size()) << "of the image, as always";
      compute(static_cast<unsigned>(set));
    }
    EXPECT_LT(size(2), size(1) / 4);
  }
  for (const std::uint64_t set : {1, 2, 4}) expect_restored(on(set, 0), sets[set - 1].first, sets[set - 1].second);
}

// Without the operator's promise to keep it, as by an older one; and on none but the group's first.
TEST_F(Bases, OnlyTheSetThatTheOperatorNamesIsBuiltOn) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  store(source, on(1, 0));
  for (const auto& [set, base] :
       {std::pair{2, 0}, std::pair{3, 2}, std::pair{4, 3}, std::pair{9, 1}, std::pair{10, 1}}) {
    const wire::SaveStatus save = store(source, on(static_cast<std::uint64_t>(set), static_cast<std::uint64_t>(base)));
    EXPECT_EQ(save.base, 0u) << set;
    EXPECT_GT(size(save.set), content_.size()) << set;
  }
}

TEST_F(Bases, WhatWasWholeOnceStaysWholeUntilTheNextGroup) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  const std::string before = content_;
  store(source, on(1, 0));
  content_ = random_text(before.size(), 50);
  EXPECT_EQ(store(source, on(2, 1)).base, 0u) << "all has changed";
  EXPECT_TRUE(fs::exists(stored(2).parent_path() / "whole-0"));
  content_ = before;
  EXPECT_EQ(store(source, on(3, 1)).base, 0u) << "by its mark the base may be gone";
  EXPECT_EQ(store(source, on(9, 0)).base, 0u);
  EXPECT_FALSE(fs::exists(stored(9).parent_path() / "whole-0"));
  EXPECT_EQ(store(source, on(10, 9)).base, 9u);
}

TEST_F(Bases, ARestartedSidecarStoresAllOfIt) {
  wire::SaveStatus second, third;
  {
    RealSidecar source(1, {.place = storage_});
    stop_at_a_gate(source);
    store(source, on(1, 0));
    EXPECT_EQ(store(source, on(2, 1)).base, 1u);
    source.restart();
    stop_at_a_gate(source);
    third = store(source, on(3, 1));
    EXPECT_EQ(third.base, 0u);
    second = store(source, on(10, 9));
    EXPECT_EQ(second.base, 0u) << "it has no image of set 9";
  }
  fs::remove_all(stored(1).parent_path());
  expect_restored(on(3, 0), third, content_);
}

TEST_F(Bases, ABaseThatCantBeReadIsNotBuiltOn) {
  wire::SaveStatus second;
  {
    RealSidecar source(1, {.place = storage_});
    stop_at_a_gate(source);
    store(source, on(1, 0));
    fs::remove(stored(1));
    second = store(source, on(2, 1));
    EXPECT_EQ(second.base, 0u);
  }
  expect_restored(on(2, 0), second, content_);
}

TEST_F(Bases, AFailedSetCostsNoBase) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  store(source, on(1, 0));
  fs::create_directories(stored(2).parent_path());
  std::ofstream(stored(2)) << "somebody's";
  EXPECT_TRUE(source.ask(wire::kSave, reflect::write(on(2, 1))));
  dump(source, 2);
  source.wait_until([](const wire::RankStatus& s) { return is(s, SavePhase::kFailed); });
  EXPECT_TRUE(source.ask(wire::kSave, reflect::write(on(3, 1))));
  dump(source, 3, false);
  source.wait_until([](const wire::RankStatus& s) { return is(s, SavePhase::kFailed) && s.save->set == 3; });
  EXPECT_EQ(store(source, on(4, 1)).base, 1u);
}

TEST_F(Bases, WhoseBaseIsDamagedOrGoneIsRefused) {
  wire::SaveStatus first, second;
  {
    RealSidecar source(1, {.place = storage_});
    stop_at_a_gate(source);
    first = store(source, on(1, 0));
    compute(1);
    second = store(source, on(2, 1));
    ASSERT_EQ(second.base, 1u);
  }
  const std::string whole = read_file(stored(1)).value();
  const auto damage = [&](const std::string& content) { std::ofstream(stored(1), std::ios::binary) << content; };
  // In what was replaced, too: it isn't the file that was stored.
  for (const std::size_t at : {std::size_t{5}, whole.size() / 2, std::size_t{300'000}, whole.size() - 1}) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    damage(flipped);
    expect_refused(on(2, 0), second, "set 1, which it builds on: the stored image is damaged");
  }
  damage(whole.substr(0, whole.size() - 300'000));
  expect_refused(on(2, 0), second, "set 1, which it builds on: the stored image is damaged");
  damage("");
  expect_refused(on(2, 0), second, "set 1, which it builds on: the stored image is damaged");
  // Another image under its name, whole and authentic.
  fs::copy_file(stored(2), stored(1), fs::copy_options::overwrite_existing);
  expect_refused(on(2, 0), second, "set 1, which it builds on");
  fs::remove(stored(1));
  expect_refused(on(2, 0), second, "set 1, which it builds on: there is no");
  damage(whole);
  expect_restored(on(2, 0), second, content_);
}

TEST_F(Bases, StayAsLongAsASetBuildsOnThem) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  store(source, on(1, 0));
  for (const std::uint64_t set : {2, 3, 4}) EXPECT_EQ(store(source, on(set, 1)).base, 1u);
  const auto gone = [&](std::uint64_t set) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (fs::exists(stored(set)) && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(10ms);
    return !fs::exists(stored(set));
  };
  const auto keep = [&](const wire::KeepSetsRequest& sets) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!source.ask(wire::kKeepSets, reflect::write(sets)) && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(10ms);  // the last removal is still under way
  };
  keep({.below = 4, .keep = {3, 4, 1}, .bases = {1}});
  EXPECT_TRUE(gone(2));
  EXPECT_TRUE(fs::exists(stored(1)));
  // As an older operator asks, which knows no bases.
  keep({.below = 4, .keep = {4}, .bases = {}});
  EXPECT_TRUE(gone(3));
  EXPECT_TRUE(fs::exists(stored(1)));
  // Marked as whole, the kept ones let go of it, though the operator still names it for another rank's sake.
  content_ = random_text(content_.size(), 60);
  for (const std::uint64_t set : {5, 6}) EXPECT_EQ(store(source, on(set, 1)).base, 0u);
  keep({.below = 6, .keep = {5, 6, 1}, .bases = {1}});
  EXPECT_TRUE(gone(4));
  EXPECT_TRUE(gone(1));
  EXPECT_TRUE(fs::exists(stored(5)) && fs::exists(stored(6)));
}

// What is equal in two images is not equal in their files, and the files say nothing of what was left out.
TEST_F(Bases, TheFilesShowNothing) {
  RealSidecar source(1, {.place = storage_});
  stop_at_a_gate(source);
  store(source, on(1, 0));
  compute(1);
  ASSERT_EQ(store(source, on(2, 1)).base, 1u);
  const std::string base = read_file(stored(1)).value(), delta = read_file(stored(2)).value();
  for (const char* word : {"bspdelt1", "\"base\"", "digest"}) EXPECT_FALSE(delta.contains(word)) << word;
  EXPECT_FALSE(delta.contains(base64_encode(std::string(32, 'b')))) << "the key of set 1";
  for (std::size_t i = 0; i < 50; ++i) EXPECT_FALSE(base.contains(delta.substr(4096 + i * delta.size() / 60, 16))) << i;
}

}  // namespace
}  // namespace bsp::sidecar
