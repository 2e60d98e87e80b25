#include "operator/kube/api_client.h"

#include <algorithm>
#include <format>

#include "operator/kube/feed.h"
#include "operator/kube/fields.h"
#include "operator/kube/reflector.h"

namespace bsp::kube {
namespace {

using Steady = std::chrono::steady_clock;
constexpr int kMaxConflicts = 5;           // attempts to update without a version, and to list from the start
constexpr std::size_t kMaxBuffered = 500;  // events that wait for the caller of wait_part()

std::string name_of(const Key& key) {
  return key.name_space.empty() ? std::format("{} {}", key.kind.kind, key.name)
                                : std::format("{} {}/{}", key.kind.kind, key.name_space, key.name);
}

Result<Key> key_of_object(const Object& object) {
  if (!object.is_object()) return fail(ErrorCode::kInvalid, "not an object");
  if (!part_at(object, "metadata").is_object()) return fail(ErrorCode::kInvalid, "metadata: is required");
  Key key{{text_at(object, "apiVersion"), text_at(object, "kind")},
          metadata_text(object, "namespace"),
          metadata_text(object, "name")};
  if (key.kind.api_version.empty()) return fail(ErrorCode::kInvalid, "apiVersion: is required");
  if (key.kind.kind.empty()) return fail(ErrorCode::kInvalid, "kind: is required");
  return key;
}

bool is_path_segment(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of("/%") == std::string::npos;
}

std::string text_of(const Object& object) { return object.dump(-1, ' ', false, Object::error_handler_t::replace); }

// Adds the object's name unless the server wrote the message, which then has it.
Error with_object(Error error, const Key& key) {
  const bool from_server = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kNotFound ||
                           error.code == ErrorCode::kConflict || error.code == ErrorCode::kRefused;
  return from_server ? error : error.in(name_of(key));
}

Error refusal(const Answer& answer, const Kind& kind, Resources& resources) {
  Error error = error_of(answer.status, answer.body);
  // Then a 404 is about the kind, not the object: the second is the whole text for a version that the server has dropped.
  const bool unserved =
      error.message.contains("could not find the requested resource") || error.message.contains("404 page not found");
  if (answer.status != 404 || !unserved) return error;
  resources.forget(kind.api_version);
  return {ErrorCode::kUnavailable, std::format("the API server doesn't serve {} at the moment", kind.kind), true};
}

}  // namespace

struct ApiClient::Watch {
  Feed feed;
  std::vector<std::unique_ptr<Reflector>> reflectors;
  std::mutex busy;  // one wait() at a time per cursor
  bool complete = false;
  Watch(std::size_t kinds, std::size_t limit) : feed(kinds, limit) {}
};

ApiClient::ApiClient(std::unique_ptr<Http> http, ApiClientOptions options)
    : options_(std::move(options)), http_(std::move(http)), api_(*http_, options_.api), resources_(api_) {}

Result<std::unique_ptr<ApiClient>> ApiClient::create(const Config& config, ApiClientOptions options) {
  options.http.stream_idle = std::chrono::seconds(options.watch.count() * 3 / 2) + options.grace;
  BSP_TRY(auto http, Http::create(config, options.http));
  return std::unique_ptr<ApiClient>(new ApiClient(std::move(http), std::move(options)));
}

ApiClient::~ApiClient() {
  close();
  watches_.clear();  // joins the threads that use the other members
}

void ApiClient::close() {
  http_->close();
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [cursor, watch] : watches_) watch->feed.close();
}

// Adds the default namespace, and checks that neither name nor namespace leads to another path on the server.
Result<Key> ApiClient::checked(Key key) const {
  if (!is_path_segment(key.name))
    return fail(ErrorCode::kInvalid, key.name.empty()
                                         ? std::string("metadata.name: is required")
                                         : std::format("metadata.name: \"{}\" is not a valid name", key.name));
  if (key.name_space.empty()) key.name_space = http_->config().name_space;
  if (!is_path_segment(key.name_space))
    return fail(ErrorCode::kInvalid, std::format("metadata.namespace: \"{}\" is not a valid name", key.name_space));
  return key;
}

Result<Object> ApiClient::write(const HttpRequest& request, const Key& key, bool repeatable) {
  auto answer = api_.send(request, repeatable);
  if (!answer) return std::unexpected(with_object(answer.error(), key));
  if (!answer->ok()) return std::unexpected(with_object(refusal(*answer, key.kind, resources_), key));
  return parse_object(answer->body, name_of(key));
}

Result<Object> ApiClient::get(const Key& given) {
  BSP_TRY(const Key key, checked(given));
  BSP_TRY(const Resource resource, resources_.find(key.kind));
  return write({.target = resource.item(key.name_space, key.name)}, key);
}

Result<std::vector<Object>> ApiClient::list(const Kind& kind, const std::string& name_space,
                                            const std::map<std::string, std::string>& labels) {
  BSP_TRY(const Resource resource, resources_.find(kind));
  std::string selector;
  for (const auto& [label, value] : labels)
    selector += std::format("{}{}={}", selector.empty() ? "" : ",", label, value);
  if (!selector.empty()) selector = "&labelSelector=" + percent_encode(selector);
  std::vector<Object> objects;
  std::string next;
  for (int restarts = 0;;) {
    const std::string target = std::format("{}?limit={}{}{}", resource.collection(name_space), options_.page, selector,
                                           next.empty() ? "" : "&continue=" + percent_encode(next));
    BSP_TRY(const Answer answer, api_.send({.target = target}));
    if (answer.status == 410 && !next.empty() && restarts < kMaxConflicts) {
      ++restarts;  // the list's version has expired: start over
      next.clear();
      objects.clear();
      continue;
    }
    if (answer.status == 404) resources_.forget(kind.api_version);
    if (!answer.ok()) return std::unexpected(error_of(answer.status, answer.body));
    BSP_TRY(Object page, parse_object(answer.body, target));
    if (page.contains("items") && page["items"].is_array())
      for (Object& item : page["items"]) {
        if (!item.is_object()) continue;
        item["apiVersion"] = kind.api_version;
        item["kind"] = kind.kind;
        objects.push_back(std::move(item));
      }
    next = text_at(part_at(page, "metadata"), "continue");
    if (next.empty()) break;
  }
  std::ranges::stable_sort(
      objects, {}, [](const Object& o) { return std::pair(metadata_text(o, "namespace"), metadata_text(o, "name")); });
  return objects;
}

Result<Object> ApiClient::create(const Object& object) {
  BSP_TRY(Key key, key_of_object(object));
  // With generateName every attempt would create another object.
  const bool named = !key.name.empty();
  if (!named && !metadata_text(object, "generateName").empty()) key.name = metadata_text(object, "generateName");
  BSP_TRY(key, checked(key));
  BSP_TRY(const Resource resource, resources_.find(key.kind));
  Object body = object;
  body["metadata"].erase("resourceVersion");  // the server rejects it
  body["metadata"].erase("uid");
  return write(
      {.method = "POST",
       // A pod is made of what a user wrote: a field that the server doesn't know is a mistake to report, not to drop.
       .target =
           std::format("{}?fieldManager={}{}", resource.collection(key.name_space),
                       percent_encode(options_.field_manager), key.kind.kind == "Pod" ? "&fieldValidation=Strict" : ""),
       .body = text_of(body),
       .once = !named},
      key, named);
}

Result<Object> ApiClient::update(const Object& object) { return replace(object, false); }
Result<Object> ApiClient::update_status(const Object& object) { return replace(object, true); }

Result<Object> ApiClient::replace(const Object& object, bool status) {
  BSP_TRY(Key key, key_of_object(object));
  BSP_TRY(key, checked(key));
  BSP_TRY(const Resource resource, resources_.find(key.kind));
  if (status && !resource.has_status)
    return fail(ErrorCode::kInvalid, std::format("{} has no status subresource", key.kind.kind));
  HttpRequest request{.method = "PUT",
                      .target = std::format("{}{}?fieldManager={}", resource.item(key.name_space, key.name),
                                            status ? "/status" : "", percent_encode(options_.field_manager))};
  if (!metadata_text(object, "resourceVersion").empty()) {
    request.body = text_of(object);
    return write(request, key);
  }
  // Without a version the writer overwrites whatever is there. For these kinds the server requires no version, so the
  // writer needs no permission to read them.
  const bool unread = resource.plural == "secrets" || resource.plural == "networkpolicies";
  if (unread && !status) {
    request.body = text_of(object);
    return write(request, key);
  }
  // For all other kinds the server requires a version.
  Object next = object;
  for (int tries = 1;; ++tries) {
    BSP_TRY(const Object current, get(key));
    next["metadata"]["resourceVersion"] = metadata_text(current, "resourceVersion");
    request.body = text_of(next);
    auto written = write(request, key);
    const std::string uid = metadata_text(object, "uid");
    const bool other = !uid.empty() && uid != metadata_text(current, "uid");
    if (written || written.error().code != ErrorCode::kConflict || other || tries == kMaxConflicts) return written;
  }
}

Result<void> ApiClient::remove(const Key& given, const std::string& uid) {
  BSP_TRY(const Key key, checked(given));
  BSP_TRY(const Resource resource, resources_.find(key.kind));
  Object body = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  if (!uid.empty()) body["preconditions"]["uid"] = uid;
  auto answer =
      api_.send({.method = "DELETE", .target = resource.item(key.name_space, key.name), .body = text_of(body)});
  if (!answer) return std::unexpected(with_object(answer.error(), key));
  // After a repeated request, 404 may mean that our own earlier attempt deleted it.
  if (answer->ok() || (answer->status == 404 && answer->repeated)) return {};
  return std::unexpected(with_object(refusal(*answer, key.kind, resources_), key));
}

Result<Object> ApiClient::patch(const Key& given, const Object& merge, const std::string& subresource) {
  BSP_TRY(const Key key, checked(given));
  BSP_TRY(const Resource resource, resources_.find(key.kind));
  return write(
      {.method = "PATCH",
       .target = std::format("{}{}{}?fieldManager={}", resource.item(key.name_space, key.name),
                             subresource.empty() ? "" : "/", subresource, percent_encode(options_.field_manager)),
       .body = text_of(merge),
       .content_type = "application/merge-patch+json"},
      key);
}

Result<Object> ApiClient::resize_pod(const Key& given, const Object& patch) {
  BSP_TRY(const Key key, checked(given));
  BSP_TRY(const Resource resource, resources_.find(key.kind));
  if (!resource.has_resize)
    return fail(ErrorCode::kInvalid, "the API server has no pods/resize, which Kubernetes 1.33 and newer have");
  return write({.method = "PATCH",
                .target = std::format("{}/resize?fieldManager={}", resource.item(key.name_space, key.name),
                                      percent_encode(options_.field_manager)),
                .body = text_of(patch),
                .content_type = "application/strategic-merge-patch+json"},
               key);
}

Result<std::string> ApiClient::pod_log(const std::string& name_space, const std::string& pod,
                                       const LogOptions& options) {
  BSP_TRY(const Key key, checked({{"v1", "Pod"}, name_space, pod}));
  BSP_TRY(const Resource resource, resources_.find(key.kind));
  BSP_TRY(Answer answer,
          api_.call({.target = std::format("{}/log?container={}&tailLines={}&limitBytes={}",
                                           resource.item(key.name_space, key.name), percent_encode(options.container),
                                           options.tail_lines, options.limit_bytes)}));
  return std::move(answer.body);
}

std::shared_ptr<ApiClient::Watch> ApiClient::watch_of(const std::vector<Kind>& kinds, const std::string& name_space,
                                                      std::string& cursor, bool in_parts) {
  const std::lock_guard lock(mutex_);
  if (const auto it = watches_.find(cursor); it != watches_.end()) return it->second;
  cursor = std::format("w{}", next_cursor_++);
  auto watch = std::make_shared<Watch>(kinds.size(), in_parts ? kMaxBuffered : 0);
  if (closed_) watch->feed.close();
  for (const Kind& kind : kinds) {
    ReflectorOptions reflector{.page = options_.page, .watch = options_.watch, .grace = options_.grace};
    if (options_.trim) reflector.trim = [this, kind](Object& object) { options_.trim(kind, object); };
    watch->reflectors.push_back(
        std::make_unique<Reflector>(api_, resources_, kind, name_space, watch->feed, std::move(reflector)));
  }
  watches_[cursor] = watch;
  return watch;
}

Result<std::vector<WatchEvent>> ApiClient::wait(const std::vector<Kind>& kinds, const std::string& name_space,
                                                std::string& cursor, std::chrono::milliseconds timeout) {
  const std::shared_ptr<Watch> watch = watch_of(kinds, name_space, cursor, false);
  const std::lock_guard busy(watch->busy);
  if (watch->complete) return watch->feed.take(Steady::now() + timeout);
  auto first = watch->feed.take_all(Steady::now() + std::max<std::chrono::milliseconds>(timeout, options_.first_list));
  watch->complete = first.has_value();
  return first;
}

Result<std::vector<WatchEvent>> ApiClient::wait_part(const std::vector<Kind>& kinds, const std::string& name_space,
                                                     std::string& cursor, std::chrono::milliseconds timeout,
                                                     bool& complete) {
  const std::shared_ptr<Watch> watch = watch_of(kinds, name_space, cursor, true);
  const std::lock_guard busy(watch->busy);
  auto events = watch->feed.take(Steady::now() + timeout);
  watch->complete = watch->complete || watch->feed.is_complete();
  complete = watch->complete;
  // Return why the first list fails. Later failures only delay events, and the log has them.
  if (!complete && events.empty())
    if (const auto error = watch->feed.error()) return std::unexpected(*error);
  return events;
}

}  // namespace bsp::kube
