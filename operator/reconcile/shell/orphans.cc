#include "operator/reconcile/shell/orphans.h"

#include <format>
#include <set>

#include "base/core/hex.h"
#include "base/json/fields.h"
#include "base/net/pki.h"
#include "crds/requests.h"
#include "crds/stored_status.h"
#include "operator/kube/fields.h"

namespace bsp::reconcile {

Result<std::string> owner_of_sets(std::string_view seed, const std::string& cluster, const std::string& name_space) {
  BSP_TRY(const std::string owner,
          net::derive_key(seed, std::format("owner of sets in cluster {}, namespace {}", cluster, name_space)));
  return hex_of(owner);
}

std::optional<std::vector<std::string>> jobs_that_stay(const std::vector<kube::Object>& jobs,
                                                       const std::string& name_space) {
  std::set<std::string> stay;
  for (const kube::Object& job : jobs) {
    if (kube::metadata_text(job, "namespace") == name_space) stay.insert(kube::metadata_text(job, "uid"));
    if (part_at(job, "status").is_null()) continue;
    const auto status = crds::whole_status(part_at(job, "status"));
    if (!status || !status->is_object()) return std::nullopt;
    const auto& checkpoint = part_at(*status, "checkpoint");
    const auto& sets = part_at(checkpoint, "sets");
    if ((!checkpoint.is_null() && !checkpoint.is_object()) || (!sets.is_null() && !sets.is_array()))
      return std::nullopt;
    for (const kube::Object& set : sets)
      if (std::string of = text_at(set, "ofJob"); !of.empty()) stay.insert(std::move(of));
    if (stay.size() > kMostJobsThatStay) return std::nullopt;
  }
  return std::vector<std::string>(stay.begin(), stay.end());
}

migrate::Action with_search(const migrate::Action& keep_sets, OrphanSearch search) {
  if (search.owner.empty()) return keep_sets;
  auto request = wire::read_request<wire::KeepSetsRequest>(*keep_sets.fields);
  if (!request) return keep_sets;
  request->owner = std::move(search.owner);
  request->retain = search.retain;
  if (!search.retain && search.stay) {
    request->jobs = std::move(*search.stay);
    request->orphan_seconds = std::chrono::seconds(kOrphanAge).count();
  }
  migrate::Action action = migrate::Action::keep_sets(keep_sets.seat, *request);
  action.token = keep_sets.token;
  return action;
}

}  // namespace bsp::reconcile
