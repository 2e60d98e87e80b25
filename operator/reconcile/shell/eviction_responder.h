// Answers Evictions of lifecycle.k8s.io (kernel/evictions/response.h), in rounds: each reads all of them. What must survive is in
// the Evictions and in the RankMigrations' labels, so it may be replaced at any time.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/client.h"
#include "operator/reconcile/kernel/evictions/response.h"

namespace bsp::reconcile {

inline const kube::Kind kEviction{"lifecycle.k8s.io/v1alpha1", "Eviction"};

class EvictionResponder {
 public:
  // `name_space`: of the jobs; "": all.
  EvictionResponder(kube::Client& client, std::string name_space)
      : client_(client), name_space_(std::move(name_space)) {}

  // True if the API server has Evictions, as it said last. From any thread.
  [[nodiscard]] bool serves() const { return serves_; }
  // The first error of the round; the other Evictions are answered nevertheless.
  Result<void> round(Time now);
  // Completes the Eviction of a pod that is about to be deleted: the pod may be gone before the next round, and the API's controller
  // would take the operator for interrupted. Through `client`, from any thread.
  void complete_before_removal(kube::Client& client, const kube::Key& pod, const std::string& pod_uid, Time now);

 private:
  void remember(const std::vector<kube::Object>& evictions);
  Result<void> answer(const kube::Object& eviction, Time now);
  Result<void> withdraw(const std::string& name_space, const std::string& eviction_uid);
  Result<void> withdraw_vanished(const std::set<std::string>& there);

  struct Active {
    kube::Key eviction;
    EvictionReview review;
  };

  kube::Client& client_;
  const std::string name_space_;
  std::atomic<bool> serves_ = false;
  bool knows_asked_ = false;         // asked_ has those of the operator before this one
  std::set<std::string> asked_;      // uids of Evictions that have RankMigrations which may not have ended
  std::set<std::string> withdrawn_;  // uids of Evictions that are Canceled, and whose RankMigrations are deleted
  std::mutex mutex_;
  std::map<std::string, Active> active_;  // of the last round, by the pod's uid; under mutex_
};

// The shell's client: pods that it makes name the operator as their responder where there are Evictions. The shell has hashed them
// before, so that another operator, which knows more or less of what the API server has, takes them for its own.
class RespondingClient final : public kube::Client {
 public:
  // Called before a pod is deleted.
  using BeforeRemoval = std::function<void(kube::Client&, const kube::Key&, const std::string& uid)>;
  // `serves`: whether there are Evictions. Both are called from all threads of the shell.
  RespondingClient(kube::Client& to, std::function<bool()> serves, BeforeRemoval before_removal)
      : to_(to), serves_(std::move(serves)), before_removal_(std::move(before_removal)) {}

  Result<kube::Object> get(const kube::Key& key) override { return to_.get(key); }
  Result<std::vector<kube::Object>> list(const kube::Kind& kind, const std::string& name_space,
                                         const std::map<std::string, std::string>& labels) override {
    return to_.list(kind, name_space, labels);
  }
  Result<kube::Object> create(const kube::Object& object) override;
  Result<kube::Object> update(const kube::Object& object) override { return to_.update(object); }
  Result<kube::Object> update_status(const kube::Object& object) override { return to_.update_status(object); }
  Result<kube::Object> patch_status(const kube::Key& key, const kube::Object& merge) override {
    return to_.patch_status(key, merge);
  }
  Result<kube::Object> resize_pod(const kube::Key& pod, const kube::Object& patch) override {
    return to_.resize_pod(pod, patch);
  }
  Result<void> remove(const kube::Key& key, const std::string& uid) override;
  Result<std::vector<kube::WatchEvent>> wait(const std::vector<kube::Kind>& kinds, const std::string& name_space,
                                             std::string& cursor, std::chrono::milliseconds timeout) override {
    return to_.wait(kinds, name_space, cursor, timeout);
  }
  Result<std::vector<kube::WatchEvent>> wait_part(const std::vector<kube::Kind>& kinds, const std::string& name_space,
                                                  std::string& cursor, std::chrono::milliseconds timeout,
                                                  bool& complete) override {
    return to_.wait_part(kinds, name_space, cursor, timeout, complete);
  }

 private:
  kube::Client& to_;
  const std::function<bool()> serves_;
  const BeforeRemoval before_removal_;
};

}  // namespace bsp::reconcile
