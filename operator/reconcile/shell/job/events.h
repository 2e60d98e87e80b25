// Events about an object, for kubectl get events and kubectl describe (events.k8s.io/v1).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "operator/kube/client.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// An event that repeats within kSeries of the last time increments its series instead of making a new one: a job that finds no
// node has one event. A restarted operator starts new series.
class EventRecorder {
 public:
  static constexpr std::chrono::minutes kSeries{6};  // as in client-go
  static constexpr std::size_t kNoteBytes = 1024;    // the API server's limit

  // `client` must outlive this.
  explicit EventRecorder(kube::Client& client) : client_(client) {}

  // Writes it, at once, and logs it; an event that can't be written is only logged.
  void record(const crds::BspJob& job, const Event& event, Time now);

 private:
  struct Recorded {
    std::string name;  // of the Event
    Time last{};
    std::uint32_t count = 1;
  };

  bool count_again(Recorded& event, const std::string& name_space, Time now);

  kube::Client& client_;
  std::map<std::string, Recorded> recorded_;  // by job, type, reason and note
};

// At most `bytes` of it, whole characters (UTF-8), with "…" where something is left out.
std::string shortened(std::string_view text, std::size_t bytes);

}  // namespace bsp::reconcile
