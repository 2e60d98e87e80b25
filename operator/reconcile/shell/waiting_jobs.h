// The jobs whose stored status says that they wait for slots: what start_queue.h orders. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "operator/kube/client.h"
#include "operator/reconcile/kernel/start/start_queue.h"

namespace bsp::reconcile {

class WaitingJobs {
 public:
  // A BSPJob as it is now; null: it is gone.
  void note(const std::string& key, const kube::Object* job);
  // start_queue.h
  [[nodiscard]] std::string ahead_of(const WaitingJob& mine) const;
  [[nodiscard]] std::vector<std::string> wanted_by_none_ahead(const WaitingJob& mine,
                                                              const std::vector<std::string>& sets) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, WaitingJob> jobs_;  // by key
};

}  // namespace bsp::reconcile
