// A client that forwards every request to another one; a test overrides what it changes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/kube/client.h"

namespace bsp::reconcile {

class ForwardingClient : public kube::Client {
 public:
  explicit ForwardingClient(kube::Client& to) : to_(to) {}
  Result<kube::Object> get(const kube::Key& key) override { return to_.get(key); }
  Result<std::vector<kube::Object>> list(const kube::Kind& kind, const std::string& name_space,
                                         const std::map<std::string, std::string>& labels) override {
    return to_.list(kind, name_space, labels);
  }
  Result<kube::Object> create(const kube::Object& object) override { return to_.create(object); }
  Result<kube::Object> update(const kube::Object& object) override { return to_.update(object); }
  Result<kube::Object> update_status(const kube::Object& object) override { return to_.update_status(object); }
  Result<kube::Object> patch_status(const kube::Key& key, const kube::Object& merge) override {
    return to_.patch_status(key, merge);
  }
  Result<kube::Object> resize_pod(const kube::Key& pod, const kube::Object& patch) override {
    return to_.resize_pod(pod, patch);
  }
  Result<void> remove(const kube::Key& key, const std::string& uid) override { return to_.remove(key, uid); }
  Result<std::vector<kube::WatchEvent>> wait(const std::vector<kube::Kind>& kinds, const std::string& name_space,
                                             std::string& cursor, std::chrono::milliseconds timeout) override {
    return to_.wait(kinds, name_space, cursor, timeout);
  }

 private:
  kube::Client& to_;
};

}  // namespace bsp::reconcile
