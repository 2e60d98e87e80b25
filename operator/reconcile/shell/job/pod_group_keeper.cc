#include "operator/reconcile/shell/job/pod_group_keeper.h"

#include "base/json/fields.h"

namespace bsp::reconcile {

namespace {
constexpr std::chrono::minutes kGroupAgain{1};
constexpr std::chrono::seconds kRefusedGroupAgain{5}, kGoingGroupAgain{1};
}  // namespace

Result<kube::Object> create_pod_group(kube::Client& client, kube::Object group) {
  std::optional<Error> first;
  for (std::string& version : pod_group_versions(group)) {
    group["apiVersion"] = std::move(version);
    auto created = client.create(group);
    if (created || !is_unserved(created.error())) return created;
    if (!first) first = std::move(created.error());
  }
  return std::unexpected(*std::move(first));
}

PodGroupFacts PodGroupKeeper::known() const {
  const std::lock_guard lock(state_->mutex);
  return state_->facts;
}

void PodGroupKeeper::keep(const nlohmann::json& group) {
  {
    const std::lock_guard lock(state_->mutex);
    if (group.is_null()) {
      state_->facts = {};
      state_->again = {};
      return;
    }
    if (const std::string name = text_at(part_at(group, "metadata"), "name"); name != state_->facts.name) {
      state_->facts = {.name = name, .made = false, .refused = {}};
      state_->again = {};
    }
    if (std::chrono::steady_clock::now() < state_->again) return;
  }
  calls_->once("create the PodGroup", [&client = client_, state = state_, group] { create(client, group, *state); });
}

void PodGroupKeeper::create(kube::Client& client, const nlohmann::json& group, State& state) {
  const auto created = create_pod_group(client, group);
  const bool exists = !created && created.error().code == ErrorCode::kConflict;
  // Kubernetes keeps one that was deleted until no pod names it any more; then another can be made.
  const bool goes = exists && created.error().message.contains("object is being deleted");
  const std::lock_guard lock(state.mutex);
  if (state.facts.name != text_at(part_at(group, "metadata"), "name")) return;  // another start's is asked for by now
  state.facts.made = created || (exists && !goes);
  state.facts.refused = state.facts.made || goes ? std::nullopt : std::optional(created.error());
  state.again = std::chrono::steady_clock::now() + (state.facts.made ? SteadyTime::duration(kGroupAgain)
                                                    : goes           ? kGoingGroupAgain
                                                                     : kRefusedGroupAgain);
}

}  // namespace bsp::reconcile
