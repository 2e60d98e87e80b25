#include "operator/reconcile/kernel/evictions/response.h"

#include <algorithm>
#include <chrono>

#include "base/json/bounded.h"
#include "base/json/fields.h"
#include "operator/reconcile/kernel/json_child.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

constexpr int kPriority = 10000;         // of the pod's managing controller, by the API
constexpr std::size_t kMostInAPod = 10;  // responders
constexpr std::chrono::seconds kHeartbeat{60}, kAtMostEvery{20};
constexpr std::size_t kMostText = 4000;  // of the message, in bytes; the API counts characters

// That of the operator in a list of status; null: none.
const json& ours_in(const json& eviction, const char* list) {
  static const json none;
  const json& all = part_at(part_at(eviction, "status"), list);
  if (!all.is_array()) return none;
  const auto found = std::ranges::find_if(all, [](const json& each) { return text_at(each, "name") == kResponder; });
  return found != all.end() ? *found : none;
}

Time time_at(const json& object, const char* name) {
  const std::string text = text_at(object, name);
  return text.empty() ? Time{} : from_rfc3339(text);
}

}  // namespace

void name_responder(json& pod) {
  json& spec = child(pod, "spec", json::value_t::object);
  if (!part_at(spec, "schedulingGroup").is_null()) return;
  json& responders = child(spec, "evictionResponders", json::value_t::array);
  const bool named = std::ranges::any_of(responders, [](const json& r) { return text_at(r, "name") == kResponder; });
  if (!named && responders.size() < kMostInAPod) responders.push_back({{"name", kResponder}, {"priority", kPriority}});
}

ResponderState responder_state(const json& eviction) {
  const std::string state = text_at(ours_in(eviction, "targetResponders"), "state");
  if (state == "Canceled") return ResponderState::kCanceled;
  if (state == "Completed" || state == "Interrupted") return ResponderState::kOver;
  if (state != "Active") return ResponderState::kNone;
  const json& own = ours_in(eviction, "responders");
  if (!own.is_object()) return ResponderState::kNone;  // the API's controller has not made it yet
  return text_at(own, "completionTime").empty() ? ResponderState::kActive : ResponderState::kOver;
}

EvictionReview review_of(const json& eviction) {
  const json& metadata = part_at(eviction, "metadata");
  const json& pod = part_at(part_at(part_at(eviction, "spec"), "target"), "pod");
  return {.uid = text_at(metadata, "uid"),
          .name_space = text_at(metadata, "namespace"),
          .pod = text_at(pod, "name"),
          .pod_uid = text_at(pod, "uid"),
          .dry_run = false};
}

bool is_done(const EvictionReview& review, const EvictionFacts& facts) {
  const json& metadata = part_at(facts.pod, "metadata");
  const std::string phase = text_at(part_at(facts.pod, "status"), "phase");
  return !facts.pod.is_object() || facts.pod.empty() || text_at(metadata, "uid") != review.pod_uid ||
         !text_at(metadata, "deletionTimestamp").empty() || phase == "Succeeded" || phase == "Failed" ||
         !facts.job.is_object() || facts.job.empty() || !facts.budget.is_object() || facts.budget.empty() ||
         !text_at(part_at(facts.budget, "metadata"), "deletionTimestamp").empty();
}

std::string message_of(const EvictionAnswer& answer, bool done) {
  return done && !answer.allowed ? "the pod has ended" : answer.message;
}

bool respond(json& eviction, bool done, const std::string& message, Time now) {
  if (responder_state(eviction) != ResponderState::kActive) return false;
  const json own = ours_in(eviction, "responders");
  const Time before = time_at(own, "heartbeatTime");
  std::string text = message;
  cut_text(text, kMostText);
  if (!done && before != Time{}) {
    const auto since = now - before;
    if (since < kAtMostEvery || (since < kHeartbeat && text_at(own, "message") == text)) return false;
  }
  // Neither before the start nor before the last one, whatever this machine's clock says.
  const std::string at = to_rfc3339(std::max({now, before, time_at(own, "startTime")}));
  for (json& each : eviction["status"]["responders"]) {
    if (text_at(each, "name") != kResponder) continue;
    each["heartbeatTime"] = at;
    each["message"] = text;
    if (done) each["completionTime"] = at;
  }
  return true;
}

}  // namespace bsp::reconcile
