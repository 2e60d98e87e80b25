// kube::Client of a Kubernetes API server, over HTTPS.
//
//   Config ─> Http (connections) ─> Api (tries, errors) ─> Resources (discovery) ─> ApiClient
//                                                     └──> Reflector per kind ─> Feed ─> wait()
//
// Beyond the interface: server-side apply, deletion with a precondition, sub-resources by merge patch. A write
// whose answer was lost is repeated, so a create() may answer kConflict because its own first try got through.
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
  std::size_t page = 250;               // objects per answer to a list
  std::chrono::seconds watch{60};       // how long one watch lasts
  std::chrono::seconds grace{15};       // and how long beyond that its silence is borne
  std::chrono::seconds first_list{30};  // wait()'s first call takes up to this
  // Called on every object that a watch brings, on its thread: drop what nobody reads, to save memory.
  std::function<void(const Kind&, Object&)> trim = {};
};

struct ApplyOptions {
  std::string field_manager = {};  // "": the client's own
  bool force = true;               // take fields over from other managers; controllers do
  bool dry_run = false;
};

struct RemoveOptions {
  std::string uid = {};      // only this very object, else kConflict
  std::string version = {};  // only as it was at this resourceVersion
  std::optional<std::chrono::seconds> grace = std::nullopt;
  bool foreground = false;  // what it owns goes first
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
  // Server-side apply: `object` holds just the fields that we have an opinion on. Creates it if need be. An
  // apply that changes nothing writes nothing. kConflict, not worth another try, names fields that others own.
  Result<Object> apply(const Object& object, const ApplyOptions& options = {});
  Result<Object> apply_status(const Object& object, const ApplyOptions& options = {});
  // JSON merge patch (RFC 7386); with metadata.resourceVersion in it, optimistic locking.
  Result<Object> patch(const Key& key, const Object& merge, const std::string& subresource = "");

  // The last lines that a container wrote.
  Result<std::string> pod_log(const std::string& name_space, const std::string& pod, const LogOptions& options);

  // The server's version, such as "v1.36.3"; also a check that it can be reached and takes our credentials.
  Result<std::string> server_version();
  // Ends all calls under way, and all later ones, with kUnavailable. For a shutdown that must not wait.
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
