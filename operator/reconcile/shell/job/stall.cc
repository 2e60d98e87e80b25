#include "operator/reconcile/shell/job/stall.h"

#include <algorithm>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/metrics.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

json stalled_condition(const std::string& since, const std::string& reason, const std::string& message) {
  return {
      {"type", kStalled}, {"status", "True"}, {"lastTransitionTime", since}, {"reason", reason}, {"message", message}};
}

// Edits the object as it is, since its status may be what can't be parsed. False: nothing has changed.
bool edit_condition(kube::Object& object, bool on, const std::string& reason, const std::string& message) {
  if (!part_at(object, "status").is_object()) object["status"] = json::object();
  json& status = object["status"];
  if (!part_at(status, "conditions").is_array()) status["conditions"] = json::array();
  auto& conditions = status["conditions"].get_ref<json::array_t&>();
  const auto before = std::ranges::find(conditions, kStalled, [](const json& c) { return text_at(c, "type"); });
  const bool was = before != conditions.end();
  if (was == on && (!was || text_at(*before, "message") == message)) return false;
  const std::string since = was ? text_at(*before, "lastTransitionTime") : to_rfc3339(SystemClock{}.now());
  if (was) conditions.erase(before);
  if (on) conditions.push_back(stalled_condition(since, reason, message));
  return true;
}

}  // namespace

Duration Stall::begin(const Error& error) {
  reconcile_retries.add({"error"});
  const Duration rest = rests_.next();
  until_ = std::chrono::steady_clock::now() + rest;
  log_error("failed to reconcile a job", {{"job", job_ref_.key()}, {"error", error.message}});
  set_condition(true, "InternalError", error.message + "; please report it with the operator's log");
  return rest;
}

void Stall::end(const crds::BspJob* job) {
  rests_.reset();
  if (job && is_on(job->status, kStalled)) set_condition(false, "Recovered", "the job is reconciled again");
}

void Stall::set_condition(bool on, const std::string& reason, const std::string& message) {
  bool news = false;
  const auto written = kube::modify_status(client_, job_ref_.at, [&](kube::Object& object) {
    news = kube::metadata_text(object, "uid") == job_ref_.uid && edit_condition(object, on, reason, message);
    return news;
  });
  if (!written) return log_warning("failed to write a job's condition", {{"error", written.error().message}});
  cache_.put(*written);
  if (news) events_.add({on ? "Warning" : "Normal", reason, message});
}

}  // namespace bsp::reconcile
