#include "operator/reconcile/shell/resize_keeper.h"

#include <algorithm>
#include <format>

#include "base/core/log.h"

namespace bsp::reconcile {

using nlohmann::json;

json patch_of(const PodResize& resize) {
  json containers = json::array();
  for (const PodResize::Seat& seat : resize.seats)
    containers.push_back({{"name", container_of(seat.local)},
                          {"resources",
                           {{"limits", {{"cpu", std::format("{}m", seat.limit)}}},
                            {"requests", {{"cpu", std::format("{}m", seat.request)}}}}}});
  return {{"spec", {{"containers", std::move(containers)}}}};
}

void ResizeKeeper::State::end(const std::string& pod, const Result<kube::Object>& answer) {
  const std::lock_guard lock(mutex);
  under_way.erase(pod);
  if (answer) return void(refused.erase(pod));
  Refused& entry = refused[pod];
  entry.error = answer.error();
  entry.again = std::chrono::steady_clock::now() + entry.tries.next();
}

std::set<std::string> ResizeKeeper::being_resized() const {
  const std::lock_guard lock(state_->mutex);
  return state_->under_way;
}

void ResizeKeeper::add_refused(Observed& o) const {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [pod, refused] : state_->refused) o.not_resized.emplace(pod, refused.error);
}

void ResizeKeeper::ask(const std::vector<PodResize>& resizes) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<PodResize> due;
  {
    const std::lock_guard lock(state_->mutex);
    std::erase_if(state_->refused, [&](const auto& entry) {
      return !state_->under_way.contains(entry.first) && !std::ranges::contains(resizes, entry.first, &PodResize::pod);
    });
    for (const PodResize& resize : resizes) {
      const auto refused = state_->refused.find(resize.pod);
      if (refused != state_->refused.end() && now < refused->second.again) continue;
      if (state_->under_way.insert(resize.pod).second) due.push_back(resize);
    }
  }
  for (const PodResize& resize : due) {
    const bool begun = calls_->once("resize pod " + resize.pod, [&client = client_, &cache = cache_, state = state_,
                                                                 key = job_.own(kPod, resize.pod), resize] {
      Result<kube::Object> answer = fail(ErrorCode::kFailed, "an error of the operator itself", true);
      struct End {  // whatever is thrown
        State& state;
        const std::string& pod;
        const Result<kube::Object>& answer;
        ~End() { state.end(pod, answer); }
      } end{*state, resize.pod, answer};
      answer = client.resize_pod(key, patch_of(resize));
      if (answer)
        cache.put(*answer);
      else
        log_info("failed to resize a pod", {{"pod", key.name}, {"error", answer.error().message}});
    });
    if (begun) continue;
    const std::lock_guard lock(state_->mutex);
    state_->under_way.erase(resize.pod);
  }
}

}  // namespace bsp::reconcile
