// kube::Client for a Kubernetes API server, over HTTPS.
//
//   Config ─> Http (connections) ─> Api (retries, errors) ─> Resources (discovery) ─> ApiClient
//                                                       └──> Reflector per kind ─> Feed ─> wait()
//
// Beyond the interface: server-side apply, deletion with preconditions, merge patches of subresources. It repeats a
// write whose answer was lost, so create() may return kConflict because its own first attempt succeeded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
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

struct ApplyOptions {
  std::string field_manager = {};  // "": the client's own
  bool force = true;               // take fields over from other managers, as controllers should
  bool dry_run = false;
};

struct RemoveOptions {
  std::string uid = {};      // precondition: kConflict if the object has another uid
  std::string version = {};  // precondition: resourceVersion
  std::optional<std::chrono::seconds> grace = std::nullopt;
  bool foreground = false;  // delete its dependents first
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
  Result<void> remove(const Key& key, const std::string& uid) override {
    return remove(key, RemoveOptions{.uid = uid});
  }
  Result<std::vector<WatchEvent>> wait(const std::vector<Kind>& kinds, const std::string& name_space,
                                       std::string& cursor, std::chrono::milliseconds timeout) override;
  Result<std::vector<WatchEvent>> wait_part(const std::vector<Kind>& kinds, const std::string& name_space,
                                            std::string& cursor, std::chrono::milliseconds timeout,
                                            bool& complete) override;

  Result<void> remove(const Key& key, const RemoveOptions& options);
  // Server-side apply: `object` holds only the fields that we manage. Creates the object if necessary; writes nothing
  // if nothing changes. kConflict (not retryable) names the fields that other managers own.
  Result<Object> apply(const Object& object, const ApplyOptions& options = {});
  Result<Object> apply_status(const Object& object, const ApplyOptions& options = {});
  // JSON merge patch (RFC 7386). With metadata.resourceVersion in it, it uses optimistic locking.
  Result<Object> patch(const Key& key, const Object& merge, const std::string& subresource = "");

  // The last lines of a container's log.
  Result<std::string> pod_log(const std::string& name_space, const std::string& pod, const LogOptions& options);

  // The server's version, such as "v1.36.3"; also checks that we can reach it and that it accepts our credentials.
  Result<std::string> server_version();
  // Fails all pending and later calls with kUnavailable, so that a shutdown needn't wait for them.
  void close();
  [[nodiscard]] const Config& config() const { return http_->config(); }
  [[nodiscard]] std::uint64_t requests() const { return api_.requests(); }

 private:
  struct Watch;
  ApiClient(std::unique_ptr<Http> http, ApiClientOptions options);
  Result<Object> write(const HttpRequest& request, const Key& key, bool repeatable = true);
  Result<Object> replace(const Object& object, bool status);
  Result<Object> apply_to(const Object& object, const ApplyOptions& options, bool status);
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
