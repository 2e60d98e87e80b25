#include "operator/reconcile/shell/job/notices.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/core/log.h"
#include "operator/reconcile/kernel/rescheduling/rescheduling.h"

namespace bsp::reconcile {

void JobNotices::add(const Notices& notices) {
  std::ranges::copy(notices.events, std::back_inserter(pending_events_));
  for (const crds::RankMigration& migration : notices.migrations) migrations_.add(migration);
}

void JobNotices::add(const Observed& o, const Advice& advice) {
  for (const std::string& line : advice.text) log_debug(line);
  for (const std::string& line : advice.records) record(line);
  if (!advice.gains.empty()) events_.add(gain_event(advice.gains, o.migrations));
  for (const RealisedGain& gain : advice.gains)
    for (const crds::RankMigration& m : o.migrations)
      if (m.metadata.name == gain.migration) {
        crds::RankMigration with_gain = m;
        with_gain.status.realised_gain_seconds = gain.seconds;
        with_gain.status.realised_gain_error_seconds = gain.error;
        with_gain.status.gain = crds::gain_text(gain.seconds, gain.error, gain.is_noise);
        migrations_.add(with_gain);
      }
}

void JobNotices::add_reported(const Decided& call) {
  if (call.record) record(*call.record);
}

void JobNotices::write() {
  for (const Event& event : std::exchange(pending_events_, {})) events_.add(event);
  migrations_.write_pending();
}

}  // namespace bsp::reconcile
