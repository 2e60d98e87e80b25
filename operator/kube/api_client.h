// kube::Client for a Kubernetes API server, over HTTPS.
//
//   Config ─> Http (connections) ─> Api (retries, errors) ─> Resources (discovery) ─> ApiClient
//                                                       └──> Reflector per kind ─> Feed ─> wait()
//
// Beyond the interface: merge patches of subresources, logs of pods. It repeats a write whose answer was lost, so create()
// may return kConflict because its own first attempt succeeded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "operator/kube/api.h"
#include "operator/kube/client.h"
#include "operator/kube/config.h"
#include "operator/kube/resources.h"

namespace bsp::kube {

struct ApiClientOptions {
  HttpOptions http = {};
  ApiOptions api = {};
  std::string field_manager = "bsp-operator";
  std::size_t page = 250;               // objects per page of a list
  std::chrono::seconds watch{60};       // duration of one watch
  std::chrono::seconds grace{15};       // how long a watch may stay silent beyond that
  std::chrono::seconds first_list{30};  // wait()'s first call may take this long
  // Called on every object that a watch brings, on the watch's thread: removes unused fields, to save memory.
  std::function<void(const Kind&, Object&)> trim = {};
};

struct LogOptions {
  std::string container;
  unsigned tail_lines = 10;
  std::size_t limit_bytes = 2000;
};

// Thread-safe.
class ApiClient final : public Client {
 public:
  // Does not connect yet. kInvalid if the configuration can't be used.
  static Result<std::unique_ptr<ApiClient>> create(const Config& config, ApiClientOptions options = {});
  ~ApiClient() override;

  Result<Object> get(const Key& key) override;
  Result<std::vector<Object>> list(const Kind& kind, const std::string& name_space,
                                   const std::map<std::string, std::string>& labels = {}) override;
  Result<Object> create(const Object& object) override;
  Result<Object> update(const Object& object) override;
  Result<Object> update_status(const Object& object) override;
  Result<Object> patch_status(const Key& key, const Object& merge) override { return patch(key, merge, "status"); }
  // kInvalid if the server has no such subresource.
  Result<Object> resize_pod(const Key& pod, const Object& patch) override;
  Result<void> remove(const Key& key, const std::string& uid) override;
  Result<std::vector<WatchEvent>> wait(const std::vector<Kind>& kinds, const std::string& name_space,
                                       std::string& cursor, std::chrono::milliseconds timeout) override;
  Result<std::vector<WatchEvent>> wait_part(const std::vector<Kind>& kinds, const std::string& name_space,
                                            std::string& cursor, std::chrono::milliseconds timeout,
                                            bool& complete) override;

  // JSON merge patch (RFC 7386). With metadata.resourceVersion in it, it uses optimistic locking.
  Result<Object> patch(const Key& key, const Object& merge, const std::string& subresource = "");

  // The last lines of a container's log.
  Result<std::string> pod_log(const std::string& name_space, const std::string& pod, const LogOptions& options);

  // Fails all pending and later calls with kUnavailable, so that a shutdown needn't wait for them.
  void close();
  [[nodiscard]] const Config& config() const { return http_->config(); }
  [[nodiscard]] std::uint64_t requests() const { return api_.requests(); }

 private:
  struct Watch;
  ApiClient(std::unique_ptr<Http> http, ApiClientOptions options);
  Result<Object> write(const HttpRequest& request, const Key& key, bool repeatable = true);
  Result<Object> replace(const Object& object, bool status);
  Result<Key> checked(Key key) const;
  std::shared_ptr<Watch> watch_of(const std::vector<Kind>& kinds, const std::string& name_space, std::string& cursor,
                                  bool in_parts);

  const ApiClientOptions options_;
  std::unique_ptr<Http> http_;
  Api api_;
  Resources resources_;
  std::mutex mutex_;
  bool closed_ = false;
  std::uint64_t next_cursor_ = 1;
  std::map<std::string, std::shared_ptr<Watch>> watches_;
};

}  // namespace bsp::kube
