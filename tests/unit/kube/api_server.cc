#include "api_server.h"

#include <format>
#include <vector>

#include "base/core/clock.h"

namespace bsp::kube_test {
namespace {

using namespace std::chrono_literals;

json status(int code, const std::string& reason, const std::string& message) {
  return {{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
          {"message", message}, {"reason", reason},   {"code", code}};
}

std::string decode(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(at, from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

// Every object from a real server has this; a client that keeps it wastes memory.
json as_sent(json object) {
  object["metadata"]["managedFields"] = {
      {{"manager", "test"}, {"fieldsV1", {{"f:spec", {{"f:deep", json::object()}}}}}}};
  return object;
}

bool selected(const json& object, const std::string& selector) {
  if (selector.empty()) return true;
  for (const std::string& term : split(selector, ',')) {
    const auto pair = split(term, '=');
    if (object["metadata"].value("labels", json::object()).value(pair[0], "") != pair.back()) return false;
  }
  return true;
}

// Of a CustomResourceDefinition, one for each version.
std::vector<std::string> roots_of(const json& spec) {
  std::vector<std::string> roots;
  for (const json& version : spec["versions"])
    roots.push_back("/apis/" + spec["group"].get<std::string>() + "/" + version["name"].get<std::string>());
  return roots;
}

}  // namespace

ApiServer::ApiServer() {
  served_["/api/v1"] = {{"pods", {"Pod", true, true, false, true}},
                        {"nodes", {"Node", false}},
                        {"configmaps", {"ConfigMap", true, false}},
                        {"secrets", {"Secret", true, false}},
                        {"namespaces", {"Namespace", false}}};
  served_["/apis/events.k8s.io/v1"] = {{"events", {"Event", true, false}}};
  served_["/apis/networking.k8s.io/v1"] = {{"networkpolicies", {"NetworkPolicy", true, false}}};
  served_["/apis/policy/v1"] = {{"poddisruptionbudgets", {"PodDisruptionBudget", true, false}}};
  served_["/apis/admissionregistration.k8s.io/v1"] = {
      {"validatingwebhookconfigurations", {"ValidatingWebhookConfiguration", false, false}}};
  served_["/apis/coordination.k8s.io/v1"] = {{"leases", {"Lease", true, false, true}}};
  served_["/apis/apiextensions.k8s.io/v1"] = {{"customresourcedefinitions", {"CustomResourceDefinition", false}}};
}

void ApiServer::compact() {
  const std::lock_guard lock(mutex_);
  compacted_ = version_;
  changes_.clear();
}

ApiServer::Objects ApiServer::backup() {
  const std::lock_guard lock(mutex_);
  return objects_;
}

void ApiServer::restore(Objects objects) {
  {
    const std::lock_guard lock(mutex_);
    objects_ = std::move(objects);
    version_ += 1000;
    compacted_ = version_;
    changes_.clear();
  }
  changed_.notify_all();
}

void ApiServer::bookmark() {
  {
    const std::lock_guard lock(mutex_);
    ++bookmarks_;
  }
  changed_.notify_all();
}

int ApiServer::bookmarks_sent() {
  const std::lock_guard lock(mutex_);
  return bookmarks_sent_;
}

int ApiServer::live_watches() {
  const std::lock_guard lock(mutex_);
  return watches_;
}

std::string ApiServer::token() {
  const std::lock_guard lock(mutex_);
  return token_;
}

void ApiServer::allow_tokens(std::set<std::string> tokens) {
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(tokens);
}

void ApiServer::handle(const Request& request, Reply& reply) {
  std::unique_lock lock(mutex_);
  if (const auto it = request.headers.find("authorization"); it != request.headers.end()) token_ = it->second;
  const bool known = tokens_.empty() ? !token_.empty() || !request.client.empty()
                                     : request.headers.contains("authorization") && tokens_.contains(token_);
  if (!known) {
    lock.unlock();
    reply.whole(401, status(401, "Unauthorized", "Unauthorized").dump());
    return;
  }
  const Target t = parse(request.target);
  if (t.query.contains("watch") && t.resource) {
    lock.unlock();
    return watch(t, reply);
  }
  const json body = json::parse(request.body, nullptr, false);
  Outcome outcome;
  if (request.target == "/version")
    outcome.body = {{"gitVersion", "v1.36.0-test"}};
  else if (served_.contains(t.root) && t.plural.empty())
    outcome = discover(t.root);
  else if (!t.resource)
    outcome = {404, status(404, "NotFound", "the server could not find the requested resource")};
  else if (request.method == "GET" && t.name.empty())
    outcome = list(t);
  else if (request.method == "POST")
    outcome = create(t, body);
  else if (request.method == "PUT")
    outcome = replace(t, body);
  else if (request.method == "PATCH" && t.sub == "resize" && t.resource->has_resize)
    outcome = resize(t, request.headers.at("content-type"), body);
  else if (request.method == "PATCH")
    outcome = patch(t, request.headers.at("content-type"), body);
  else if (request.method == "DELETE")
    outcome = remove(t, body);
  else {
    const auto& all = objects_[t.collection()];
    const auto it = all.find(t.name_space + "/" + t.name);
    outcome = it != all.end()
                  ? Outcome{200, it->second}
                  : Outcome{404, status(404, "NotFound", std::format("{} \"{}\" not found", t.plural, t.name))};
  }
  lock.unlock();
  if (outcome.body.is_object() && outcome.body.contains("metadata") && !outcome.body.contains("items"))
    outcome.body = as_sent(outcome.body);
  reply.whole(outcome.status, outcome.body.dump());
}

ApiServer::Target ApiServer::parse(const std::string& target) {
  Target t;
  const std::size_t question = target.find('?');
  if (question != std::string::npos)
    for (const std::string& pair : split(target.substr(question + 1), '&')) {
      const std::size_t equals = pair.find('=');
      t.query[pair.substr(0, equals)] = equals == std::string::npos ? "" : decode(pair.substr(equals + 1));
    }
  auto parts = split(target.substr(0, question), '/');
  parts.erase(parts.begin());
  for (std::string& part : parts) part = decode(part);
  const std::size_t depth = !parts.empty() && parts[0] == "api" ? 2 : 3;
  if (parts.size() < depth) return t;
  for (std::size_t i = 0; i < depth; ++i) t.root += "/" + parts[i];
  std::size_t at = depth;
  if (parts.size() > at + 2 && parts[at] == "namespaces") {
    t.name_space = parts[at + 1];
    at += 2;
  }
  if (parts.size() > at) t.plural = parts[at];
  if (parts.size() > at + 1) t.name = parts[at + 1];
  if (parts.size() > at + 2) t.sub = parts[at + 2];
  if (const auto group = served_.find(t.root); group != served_.end())
    if (const auto it = group->second.find(t.plural); it != group->second.end()) t.resource = &it->second;
  return t;
}

ApiServer::Outcome ApiServer::discover(const std::string& root) {
  json resources = json::array();
  for (const auto& [plural, resource] : served_[root]) {
    resources.push_back({{"name", plural}, {"kind", resource.kind}, {"namespaced", resource.namespaced}});
    for (const auto& [has, sub] : {std::pair{resource.has_status, "/status"}, {resource.has_resize, "/resize"}})
      if (has)
        resources.push_back({{"name", plural + sub}, {"kind", resource.kind}, {"namespaced", resource.namespaced}});
  }
  return {200, {{"kind", "APIResourceList"}, {"resources", resources}}};
}

// A continue token is "<version>:<last key>". Later pages show the current objects, not those of that version; only a
// test that changes objects between two pages could tell the difference from a real server.
ApiServer::Outcome ApiServer::list(const Target& t) {
  std::uint64_t version = version_;
  std::string after;
  if (t.query.contains("continue")) {
    const std::string& token = t.query.at("continue");
    version = std::stoull(token);
    after = token.substr(token.find(':') + 1);
    if (version < compacted_)
      return {410, status(410, "Expired",
                          "The provided continue parameter is too old to display a consistent list result.")};
  }
  const std::size_t limit = t.query.contains("limit") ? std::stoul(t.query.at("limit")) : 0;
  json items = json::array();
  std::string next;
  for (const auto& [key, object] : objects_[t.collection()]) {
    if (!after.empty() && key <= after) continue;
    if (!t.name_space.empty() && !key.starts_with(t.name_space + "/")) continue;
    if (!selected(object, t.query.contains("labelSelector") ? t.query.at("labelSelector") : "")) continue;
    if (limit && items.size() == limit) {
      next = std::format("{}:{}", version, after);
      break;
    }
    json item = as_sent(object);
    item.erase("kind");
    item.erase("apiVersion");
    items.push_back(item);
    after = key;
    if (limit && items.size() == limit) next = std::format("{}:{}", version, key);
  }
  const auto& all = objects_[t.collection()];
  if (!next.empty() && (all.empty() || all.rbegin()->first <= after)) next.clear();
  return {200,
          {{"kind", t.resource->kind + "List"},
           {"metadata", {{"resourceVersion", std::to_string(version)}, {"continue", next}}},
           {"items", items}}};
}

json ApiServer::store(const Target& t, const std::string& key, json object, const char* type) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  if (std::string_view(type) == "DELETED")
    objects_[t.collection()].erase(key);
  else
    objects_[t.collection()][key] = object;
  changes_.push_back({version_, type, t.collection(), object});
  changed_.notify_all();
  return object;
}

ApiServer::Outcome ApiServer::create(const Target& t, json object) {
  json& metadata = object["metadata"];
  if (metadata.contains("resourceVersion"))
    return {400, status(400, "BadRequest", "resourceVersion should not be set on objects to be created")};
  if (!metadata.contains("name"))
    metadata["name"] = std::format("{}{:x}", metadata.value("generateName", ""), version_);
  const std::string name = metadata["name"], key = t.name_space + "/" + name;
  if (objects_[t.collection()].contains(key))
    return {409, status(409, "AlreadyExists", std::format("{} \"{}\" already exists", t.plural, name))};
  if (object["spec"].is_object() && object["spec"].value("invalid", false))
    return {422,
            status(422, "Invalid",
                   std::format("{} \"{}\" is invalid: spec.invalid: Invalid value: true", t.resource->kind, name))};
  if (object["spec"].is_null()) object.erase("spec");
  if (t.resource->namespaced) metadata["namespace"] = t.name_space;
  metadata["uid"] = std::format("00000000-0000-0000-0000-{:012x}", version_);
  metadata["creationTimestamp"] = to_rfc3339(SystemClock{}.now());
  metadata["generation"] = 1;
  if (t.resource->has_status) object.erase("status");
  if (t.plural == "customresourcedefinitions") {
    const json& spec = object["spec"];
    for (const std::string& root : roots_of(spec))
      served_[root][spec["names"]["plural"]] = {spec["names"]["kind"], true, true, true};
  }
  return {201, store(t, key, object, "ADDED")};
}

ApiServer::Outcome ApiServer::store_or_finish(const Target& t, const std::string& key, const json& current, json next) {
  const json& metadata = next["metadata"];
  if (metadata.contains("deletionTimestamp") && metadata.value("finalizers", json::array()).empty())
    return {200, store(t, key, next, "DELETED")};
  if (next == current) return {200, current};
  return {200, store(t, key, next, "MODIFIED")};
}

ApiServer::Outcome ApiServer::replace(const Target& t, json object) {
  const std::string key = t.name_space + "/" + t.name;
  const auto it = objects_[t.collection()].find(key);
  if (it == objects_[t.collection()].end())
    return {404, status(404, "NotFound", std::format("{} \"{}\" not found", t.plural, t.name))};
  const json current = it->second;
  const json given = object.value("metadata", json::object());
  if (!given.contains("resourceVersion") && t.resource->needs_version)
    return {422, status(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update")};
  if ((given.contains("resourceVersion") && given["resourceVersion"] != current["metadata"]["resourceVersion"]) ||
      (given.contains("uid") && given["uid"] != current["metadata"]["uid"]))
    return {409,
            status(409, "Conflict",
                   std::format("Operation cannot be fulfilled on {} \"{}\": the object has been modified; please apply "
                               "your changes to the latest version and try again",
                               t.plural, t.name))};
  json next = current;
  if (t.sub == "status") {
    next.erase("status");
    if (object.contains("status")) next["status"] = object["status"];
    return store_or_finish(t, key, current, next);
  }
  next = object;
  json metadata = current["metadata"];
  for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    metadata.erase(field);
    if (given.contains(field)) metadata[field] = given[field];
  }
  next["metadata"] = metadata;
  if (t.resource->has_status) {
    next.erase("status");
    if (current.contains("status")) next["status"] = current["status"];
  }
  if (next.value("spec", json()) != current.value("spec", json()))
    next["metadata"]["generation"] = metadata.value("generation", 0) + 1;
  return store_or_finish(t, key, current, next);
}

ApiServer::Outcome ApiServer::patch(const Target& t, const std::string& type, const json& body) {
  if (type != "application/merge-patch+json") return {415, status(415, "UnsupportedMediaType", type)};
  const std::string key = t.name_space + "/" + t.name;
  const auto it = objects_[t.collection()].find(key);
  if (it == objects_[t.collection()].end())
    return {404, status(404, "NotFound", std::format("{} \"{}\" not found", t.plural, t.name))};
  json next = it->second;
  next.merge_patch(body);
  return replace(t, next);
}

// A strategic merge patch finds containers by their names, and there must be such containers.
ApiServer::Outcome ApiServer::resize(const Target& t, const std::string& type, const json& body) {
  if (type != "application/strategic-merge-patch+json") return {415, status(415, "UnsupportedMediaType", type)};
  const std::string key = t.name_space + "/" + t.name;
  const auto it = objects_[t.collection()].find(key);
  if (it == objects_[t.collection()].end())
    return {404, status(404, "NotFound", std::format("{} \"{}\" not found", t.plural, t.name))};
  json next = it->second;
  for (const json& given : body["spec"]["containers"]) {
    json* found = nullptr;
    for (json& container : next["spec"]["containers"])
      if (container["name"] == given["name"]) found = &container;
    if (!found) return {422, status(422, "Invalid", "spec: Forbidden: only cpu and memory resources are mutable")};
    found->merge_patch(given);
  }
  return store_or_finish(t, key, it->second, next);
}

ApiServer::Outcome ApiServer::remove(const Target& t, const json& options) {
  const std::string key = t.name_space + "/" + t.name;
  const auto it = objects_[t.collection()].find(key);
  if (it == objects_[t.collection()].end())
    return {404, status(404, "NotFound", std::format("{} \"{}\" not found", t.plural, t.name))};
  json object = it->second;
  const json wanted = options.is_object() ? options.value("preconditions", json::object()) : json::object();
  for (const auto& [field, value] : wanted.items())
    if (object["metadata"][field] != value)
      return {409,
              status(409, "Conflict", std::format("Precondition failed: {} in precondition: {}", field, value.dump()))};
  if (!object["metadata"].value("finalizers", json::array()).empty()) {
    if (object["metadata"].contains("deletionTimestamp")) return {200, object};
    object["metadata"]["deletionTimestamp"] = to_rfc3339(SystemClock{}.now());
    return {200, store(t, key, object, "MODIFIED")};
  }
  if (t.plural == "customresourcedefinitions")
    for (const std::string& root : roots_of(object["spec"])) {
      served_.erase(root);
      objects_.erase(root + "/" + object["spec"]["names"]["plural"].get<std::string>());
    }
  store(t, key, object, "DELETED");
  return {200, {{"kind", "Status"}, {"status", "Success"}}};
}

void ApiServer::watch(const Target& t, Reply& reply) {
  std::uint64_t from = std::stoull(t.query.at("resourceVersion"));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(t.query.at("timeoutSeconds")));
  if (!reply.begin(200)) return;
  std::unique_lock lock(mutex_);
  ++watches_;
  std::uint64_t bookmarks = bookmarks_;
  bool good = true;
  while (good && std::chrono::steady_clock::now() < end) {
    std::vector<std::string> lines;
    if (from < compacted_) {
      lines.push_back(json{{"type", "ERROR"}, {"object", status(410, "Expired", "too old resource version")}}.dump());
      good = false;
    }
    for (const Change& change : changes_) {
      if (change.version <= from || change.collection != t.collection()) continue;
      if (!t.name_space.empty() && change.object["metadata"].value("namespace", "") != t.name_space) continue;
      lines.push_back(json{{"type", change.type}, {"object", as_sent(change.object)}}.dump());
    }
    from = version_;
    const bool with_bookmark = bookmarks != bookmarks_ && good;
    if (with_bookmark) {
      bookmarks = bookmarks_;
      lines.push_back(
          json{{"type", "BOOKMARK"},
               {"object", {{"kind", t.resource->kind}, {"metadata", {{"resourceVersion", std::to_string(from)}}}}}}
              .dump());
    }
    lock.unlock();
    for (const std::string& line : lines) good = reply.piece(line + "\n") && good;
    if (good && lines.empty()) good = reply.alive();
    lock.lock();
    if (good && with_bookmark) ++bookmarks_sent_;
  }
  --watches_;
  lock.unlock();
  reply.end();
}

}  // namespace bsp::kube_test
