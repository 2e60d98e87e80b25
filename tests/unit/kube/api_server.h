// An in-memory API server for testing a client, with the same answers (metav1.Status, list pages, watch lines) as
// kube-apiserver.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tls_server.h"

namespace bsp::kube_test {

using nlohmann::json;

class ApiServer {
 public:
  ApiServer();
  void handle(const Request& request, Reply& reply);

  // Forgets the history so far, like etcd's compaction: older watches and list pages get 410.
  void compact();
  // All objects as they are now; and again as they were then, as etcd is when it was restored with higher versions to come.
  using Objects = std::map<std::string, std::map<std::string, json>>;  // collection -> "ns/name"
  [[nodiscard]] Objects backup();
  void restore(Objects objects);
  // Sends the current version to every watch.
  void bookmark();
  [[nodiscard]] int bookmarks_sent();
  [[nodiscard]] int live_watches();
  // The last bearer token that a client presented.
  [[nodiscard]] std::string token();
  // From now on requests need one of these tokens; client certificates don't count.
  void allow_tokens(std::set<std::string> tokens);

 private:
  struct Resource {
    std::string kind;
    bool namespaced = true;
    bool has_status = true;
    bool needs_version = false;  // rejects an update without resourceVersion
    bool has_resize = false;
  };
  struct Change {
    std::uint64_t version;
    std::string type;
    std::string collection;  // "/api/v1/pods"
    json object;
  };
  struct Target {  // a parsed path
    std::string root, plural, name_space, name, sub;
    std::map<std::string, std::string> query;
    const Resource* resource = nullptr;
    [[nodiscard]] std::string collection() const { return root + "/" + plural; }
  };
  struct Outcome {
    int status = 200;
    json body;
  };

  Target parse(const std::string& target);
  Outcome discover(const std::string& root);
  Outcome list(const Target& t);
  Outcome create(const Target& t, json object);
  Outcome replace(const Target& t, json object);
  Outcome patch(const Target& t, const std::string& type, const json& body);
  Outcome resize(const Target& t, const std::string& type, const json& body);
  Outcome remove(const Target& t, const json& options);
  void watch(const Target& t, Reply& reply);
  json store(const Target& t, const std::string& key, json object, const char* type);
  Outcome store_or_finish(const Target& t, const std::string& key, const json& current, json next);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::map<std::string, Resource>> served_;  // root -> plural
  Objects objects_;
  std::deque<Change> changes_;
  std::uint64_t version_ = 100;
  std::uint64_t compacted_ = 0;
  std::uint64_t bookmarks_ = 0;
  int bookmarks_sent_ = 0;
  int watches_ = 0;
  std::string token_;
  std::set<std::string> tokens_;
};

}  // namespace bsp::kube_test
