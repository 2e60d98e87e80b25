// Puts a real API server behind the test's server: forwards requests, and passes answers back through its faults.
//
// The tests write into the namespace "default"; rewriting gives each test its own namespace.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "operator/kube/api_client.h"
#include "tls_server.h"

namespace bsp::kube_test {

class Forward {
 public:
  explicit Forward(const std::string& kubeconfig);
  void handle(const Request& request, Reply& reply);
  [[nodiscard]] int live_watches() const { return watches_; }
  // The next watch asks for a version so old that the server answers 410 itself.
  void make_next_watch_old() { old_ = true; }

 private:
  [[nodiscard]] std::string inward(std::string text) const;
  [[nodiscard]] std::string outward(std::string text) const;
  void watch(const kube::HttpRequest& request, Reply& reply);

  std::unique_ptr<kube::Http> http_;
  std::string name_space_;
  std::atomic<int> watches_ = 0;
  std::atomic<bool> old_ = false;
};

}  // namespace bsp::kube_test
