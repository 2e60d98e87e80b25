// The inside of step(): questions about a view, and the actions that follow. Private to this module.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "operator/migrate/step.h"

namespace bsp::migrate {

inline constexpr std::string_view kNotContinued = "not every rank has continued";

class Machine {
 public:
  Machine(const Wave& wave, const View& view, Time now, const Limits& limits)
      : wave_(wave), view_(view), now_(now), limits_(limits), next_{.wave = wave} {
    // Going back after the commit, the ranks are where they were before it.
    if (wave.phase == Phase::kRollingBack && committed_next()) back_ = rollback_plan(wave, view.epoch);
  }

  // One per phase.
  void preparing();
  void pausing();
  void checkpointing();
  void transferring();
  void restoring();
  void resuming();
  void rolling_back();
  void remove_sources();
  void remove_targets();

  void enter(Phase to);
  Step take();

 private:
  // --- Answers: a changed wave, or actions ---
  void change() { changed_ = true; }
  void act(Action action);
  void roll_back(std::string reason, std::string message);
  void give_up(std::string reason, std::string message, std::optional<std::uint32_t> rank = {});
  void measure();  // fills pause and bytes

  // --- What ends the wave; true: it does ---
  bool give_up_if_needed();  // before the commit: rank gone -> Failed, anything else -> RollingBack
  bool fail_if_member_lost();
  bool fail_if_job_ends(Phase since, Duration limit);  // and the limit is over
  void note_postponement();
  void note_delay(Phase since, Duration limit, std::string_view what, const std::string& who);
  bool go_back_from_lost_target();
  [[nodiscard]] std::string admitted()
      const;  // the rank that was admitted to the next epoch, so can't go back; "": none
  bool overdue(Phase since, Duration limit);

  // --- The gate ---
  bool follow_verdict();  // of which the stored wave knows nothing
  void set_gate();
  void arm_gate();
  void commit_gate();
  bool cancel_gate();  // true: every sidecar has cancelled it
  void add_sidecar_failures();
  bool settle_gate();  // rolling back: true once it is known whether the ranks stop or not

  // --- Verbs that bring a state about; true: it is there ---
  bool prepare(const wire::EpochPlan& plan);
  bool open(const wire::EpochPlan& plan);
  bool targets_receive();
  void move_images();  // send and restore where they are due
  void save_images();  // of a checkpoint set, where a rank's isn't being made yet
  bool targets_discarded();
  bool commit_rollback(bool discarded);
  bool take_back_commit();

  // --- Questions ---
  [[nodiscard]] const SeatView* find(const Seat& seat) const;
  void for_each_member(const std::function<void(const wire::Member&, const SeatView&)>& f) const;
  // Who is which rank: in the committed epoch, or in the one to go back to.
  [[nodiscard]] const wire::EpochPlan& ranks() const { return back_ ? *back_ : view_.epoch; }
  [[nodiscard]] bool committed_next() const { return view_.epoch.epoch == wave_.next_epoch; }
  [[nodiscard]] bool past(Phase phase, Duration limit) const {
    const auto since = view_.since.find(phase);
    return since != view_.since.end() && view_.now > since->second + limit;
  }
  [[nodiscard]] static bool transfers(const SeatView& pod, const Move& move) {
    return pod.status && pod.status->transfer.migration == move.migration;
  }
  // The target holds no part of the rank, and can take one.
  [[nodiscard]] static bool is_clean(const SeatView& target, const Move& move) {
    return target.answers() && !target.deleting && target.status->init_connected &&
           target.status->phase == wire::RankPhase::kWaiting &&
           (target.status->transfer.phase == wire::TransferPhase::kIdle || !transfers(target, move));
  }
  // The rank's part of the wave's set; null: none yet.
  [[nodiscard]] const wire::SaveStatus* saved(const SeatView& pod) const {
    const bool is =
        wave_.checkpoint && pod.status && pod.status->save && pod.status->save->set == wave_.checkpoint->set;
    return is ? &*pod.status->save : nullptr;
  }
  [[nodiscard]] bool all_saved() const;                   // in memory at least
  [[nodiscard]] bool target_has(const Move& move) const;  // the whole checkpoint, verified
  [[nodiscard]] bool all_stopped() const;
  [[nodiscard]] bool anyone_finished() const;
  [[nodiscard]] std::optional<SteadyTime> first_stop() const;
  [[nodiscard]] Duration gate_time() const;
  [[nodiscard]] std::uint64_t moved_bytes() const;
  [[nodiscard]] std::string member_lost(const wire::Member& member) const;  // "": it is not
  // For messages.
  [[nodiscard]] std::string missing_targets() const;
  [[nodiscard]] std::string not_stopped() const;
  [[nodiscard]] std::string not_running() const;
  [[nodiscard]] std::string not_settled() const;  // ranks that may still stop at the gate that is given up
  enum class Blocked { kNow, kForGood };
  [[nodiscard]] std::string blocked(Blocked how) const;  // "": no rank is
  [[nodiscard]] std::string waited_for() const;          // at a committed gate

  const Wave& wave_;
  const View& view_;
  Time now_;  // only to be stored
  const Limits& limits_;
  std::optional<wire::EpochPlan> back_;
  WaveChange next_;
  bool changed_ = false;
  std::vector<Action> actions_;
};

}  // namespace bsp::migrate
