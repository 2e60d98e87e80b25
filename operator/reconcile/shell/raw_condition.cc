#include "operator/reconcile/shell/raw_condition.h"

#include <algorithm>
#include <utility>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/conditions.h"

namespace bsp::reconcile {

using nlohmann::json;

bool edit_condition(kube::Object& object, const RawCondition& condition) {
  const json& before = part_at(object, "status");
  if (!before.is_null() && !before.is_object()) return false;
  if (before.is_null()) object["status"] = json::object();
  json& status = object["status"];
  if (!part_at(status, "conditions").is_array()) status["conditions"] = json::array();
  auto& conditions = status["conditions"].get_ref<json::array_t&>();
  const auto same = std::ranges::find(conditions, condition.type, [](const json& c) { return text_at(c, "type"); });
  const bool was = same != conditions.end();
  if (was == condition.on && (!was || text_at(*same, "message") == condition.message)) return false;
  const std::string since = was ? text_at(*same, "lastTransitionTime") : to_rfc3339(SystemClock{}.now());
  if (was) conditions.erase(same);
  if (condition.on)
    conditions.push_back({{"type", condition.type},
                          {"status", "True"},
                          {"lastTransitionTime", since},
                          {"reason", condition.reason},
                          {"message", condition.message}});
  return true;
}

void write_condition(const JobParts& parts, RawCondition condition) {
  if (condition.on) condition.message = with_remedy(condition.type, std::move(condition.message));
  bool news = false;
  const auto written = kube::modify_status(parts.shell.client, parts.job.at, [&](kube::Object& object) {
    news = kube::metadata_text(object, "uid") == parts.job.uid && edit_condition(object, condition);
    return news;
  });
  if (!written) return log_warning("failed to write a job's condition", {{"error", written.error().message}});
  parts.shell.cache.put(*written);
  if (news) parts.events.add({condition.on ? "Warning" : "Normal", condition.reason, condition.message});
}

}  // namespace bsp::reconcile
