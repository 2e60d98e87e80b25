// What a wave costs the program, and its parts, from what the sidecars have measured. The program loses the time from the last rank's
// arrival at the edge (the others would have waited for it in any case) to the last rank's return from it (the next superstep waits for
// that one).
#include <algorithm>

#include "base/core/significant.h"
#include "operator/migrate/machine.h"

namespace bsp::migrate {

void Machine::measure() {
  std::uint64_t last_arrival = 0, last_stop = 0, last_return = 0, first_open = ~0ull;
  auto ms = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
  crds::PauseParts pause;
  auto stop_side = [&](const SeatView* pod) {
    if (!pod || !pod->status) return;
    last_arrival = std::max(last_arrival, pod->status->gate_reached_ns);
    last_stop = std::max(last_stop, pod->status->stopped_ns);
    pause.close_ms = std::max(pause.close_ms, ms(pod->status->close_ns));
  };
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    if (!pod.status) return;
    auto moved = std::ranges::find(wave_.moves, member.rank, &Move::rank);
    const bool on_target = moved != wave_.moves.end() && moved->target() == seat_of(member);
    stop_side(on_target ? find(moved->source()) : &pod);
    if (const wire::SaveStatus* save = saved(pod)) pause.dump_ms = std::max(pause.dump_ms, ms(save->dump_ns));
    // The shim writes when the epoch was opened, that the rank runs, and then when it returned: what is older is of the epoch before.
    if (const std::uint64_t returned = std::max(pod.status->first_compute_ns, pod.status->opened_ns)) {
      last_return = std::max(last_return, returned);
      first_open = std::min(first_open, returned - pod.status->open_ns);
    }
    pause.open_ms = std::max(pause.open_ms, ms(pod.status->open_ns));
  });
  if (last_stop == 0) return;  // nothing was paused
  if (last_arrival != 0 && last_return > last_arrival) pause.total_ms = ms(last_return - last_arrival);
  if (last_arrival != 0 && last_stop > last_arrival) pause.gate_ms = ms(last_stop - last_arrival);
  // If clocks were set meanwhile: it can't have been longer than the wave, and Auto's interval between sets follows from it.
  if (const auto begun = view_.since.find(Phase::kPausing); begun != view_.since.end()) {
    const double most_ms = to_seconds(view_.now - begun->second) * 1e3;
    for (double* part : {&pause.total_ms, &pause.gate_ms}) *part = std::min(*part, most_ms);
  }
  // From the operator's verdict to the first rank that received it: it is stored and sent.
  const auto committed = static_cast<std::uint64_t>(wave_.entered(Phase::kResuming).time_since_epoch().count());
  if (committed != 0 && first_open != ~0ull && first_open > committed) pause.commit_ms = ms(first_open - committed);
  for (const Move& move : wave_.moves) {
    std::uint64_t bytes = 0;
    double transfer_ms = 0;
    if (const SeatView* source = find(move.source()); source && transfers(*source, move)) {
      pause.dump_ms = std::max(pause.dump_ms, ms(source->status->transfer.dump_ns));
      bytes = source->status->transfer.bytes;
    }
    if (const SeatView* target = find(move.target()); target && transfers(*target, move)) {
      transfer_ms = ms(target->status->transfer.transfer_ns);
      pause.transfer_ms = std::max(pause.transfer_ms, transfer_ms);
      pause.restore_ms = std::max(pause.restore_ms, ms(target->status->transfer.restore_ns));
      bytes = std::max(bytes, target->status->transfer.bytes);
    }
    next_.wave.bytes.push_back(bytes);
    next_.wave.transfer_ms.push_back(significant(transfer_ms, 4));
  }
  next_.wave.pause = pause;
}

}  // namespace bsp::migrate
