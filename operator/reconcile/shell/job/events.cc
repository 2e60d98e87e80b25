#include "operator/reconcile/shell/job/events.h"

#include <unistd.h>

#include <array>
#include <format>
#include <tuple>

#include "base/core/log.h"
#include "crds/names.h"
#include "operator/kinds.h"
#include "operator/kube/modify.h"

namespace bsp::reconcile {

namespace {

// Which of several operators: the pod's name, in a cluster.
std::string reporting_instance() {
  std::array<char, 64> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "bsp-operator";
  return name.data();
}

}  // namespace

std::string shortened(std::string_view text, std::size_t bytes) {
  constexpr std::string_view kLeftOut = "…";
  if (text.size() <= bytes) return std::string(text);
  std::size_t end = bytes - kLeftOut.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
  return std::string(text.substr(0, end)).append(kLeftOut);
}

void EventRecorder::record(const crds::BspJob& job, const Event& event, Time now) {
  const auto& [name, name_space, uid] = std::tie(job.metadata.name, job.metadata.name_space, job.metadata.uid);
  const std::string note = shortened(event.message, kNoteBytes);
  log_info(event.message, {{"job", name_space + "/" + name}, {"reason", event.reason}});
  if (event.only_logged) return;

  std::erase_if(recorded_, [&](const auto& entry) { return now > entry.second.last + kSeries; });
  const std::string what = std::format("{}\n{}\n{}\n{}", uid, event.type, event.reason, note);
  if (const auto again = recorded_.find(what); again != recorded_.end()) {
    if (count_again(again->second, name_space, now)) return;
    recorded_.erase(again);  // it was deleted
  }

  const std::string own_name = std::format("{}.{:x}", name, now.time_since_epoch().count());
  const kube::Object object = {
      {"apiVersion", kEvent.api_version},
      {"kind", kEvent.kind},
      {"metadata",
       {{"name", own_name}, {"namespace", name_space}, {"labels", {{std::string(names::kLabelJob), name}}}}},
      {"regarding",
       {{"apiVersion", names::kApiVersion},
        {"kind", names::kBspJobKind},
        {"name", name},
        {"namespace", name_space},
        {"uid", uid}}},
      {"eventTime", to_rfc3339(now)},
      {"reportingController", names::kOperatorIdentity},
      {"reportingInstance", reporting_instance()},
      {"action", event.reason},
      {"reason", event.reason},
      {"type", event.type},
      {"note", note}};
  if (auto created = client_.create(object); !created)
    log_warning("failed to write an event", {{"error", created.error().message}});
  else
    recorded_[what] = {.name = own_name, .last = now};
}

bool EventRecorder::count_again(Recorded& event, const std::string& name_space, Time now) {
  event.last = now;
  ++event.count;
  const auto written = kube::modify(client_, {kEvent, name_space, event.name}, [&](kube::Object& object) {
    object["series"] = {{"count", event.count}, {"lastObservedTime", to_rfc3339(now)}};
    return true;
  });
  if (!written && written.error().code != ErrorCode::kNotFound)
    log_warning("failed to count an event", {{"event", event.name}, {"error", written.error().message}});
  return written || written.error().code != ErrorCode::kNotFound;
}

}  // namespace bsp::reconcile
