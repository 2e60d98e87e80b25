// Which ranks a wave waits for, for people.
#include <algorithm>
#include <format>

#include "operator/migrate/machine.h"

namespace bsp::migrate {

using wire::RankPhase;

std::string Machine::missing_targets() const {
  std::string text;
  for (const Move& move : wave_.moves) {
    const PodView* pod = find(move.target_pod);
    const char* what = !pod || !pod->exists           ? "was not created"
                       : pod->address.empty()         ? "has no address"
                       : !pod->status                 ? "has a sidecar that never answered"
                       : !pod->status->init_connected ? "has no bsp-init"
                       : !transfers(*pod, move)       ? "does not receive"
                                                      : "";
    if (*what)
      text += std::format("{}{} {}{}{}", text.empty() ? "" : ", ", move.target_pod, what,
                          pod && !pod->pending.empty() ? ": " : "", pod ? pod->pending : "");
  }
  return text.empty() ? "not every sidecar prepared the next epoch" : text;
}

namespace {
// Ranks, where they are and what they do: the first few of them.
class RankList {
 public:
  void add(const wire::Member& member, const PodView& pod) {
    constexpr std::size_t kNamed = 8;
    if (++count_ > kNamed) return;
    text_ += std::format("{}rank {} ({}) is {}", text_.empty() ? "" : ", ", member.rank, member.pod,
                         pod.answers() ? wire::to_string(pod.status->phase) : "not heard");
    named_ = count_;
  }
  [[nodiscard]] std::string text() const {
    return count_ > named_ ? std::format("{}, and {} more", text_, count_ - named_) : text_;
  }

 private:
  std::string text_;
  std::size_t count_ = 0, named_ = 0;
};
}  // namespace

std::string Machine::not_stopped() const {
  RankList ranks;
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    if (!pod.status || pod.status->phase != RankPhase::kStopped) ranks.add(member, pod);
  });
  return ranks.text();
}

std::string Machine::not_running() const {
  RankList ranks;
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    if (!pod.answers() || pod.status->phase != RankPhase::kRunning) ranks.add(member, pod);
  });
  return ranks.text();
}

std::string Machine::blocked() const {
  std::string text;
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    if (pod.status && !pod.status->blocked_reason.empty())
      text += std::format("{}rank {}: {}", text.empty() ? "" : ", ", member.rank, pod.status->blocked_reason);
  });
  return text.empty() ? "no rank reached it" : text;
}

}  // namespace bsp::migrate
