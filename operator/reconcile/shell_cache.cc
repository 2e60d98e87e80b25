#include "operator/reconcile/shell_cache.h"

#include <charconv>

#include "base/core/log.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
constexpr auto kWait = 250ms;  // the watch wakes at once; this bounds how long ending takes

kube::Kind kind_of(const kube::Object& object) {
  return {object.value("apiVersion", ""), object.value("kind", "")};
}
const std::string& name_of(const kube::Object& object) {
  return object.at("metadata").at("name").get_ref<const std::string&>();
}

std::string text_at(const kube::Object& object, const char* field) { return object.at("metadata").value(field, ""); }

// Resource versions are ordered since Kubernetes 1.35, and always in our store; what is no number counts as newest.
std::uint64_t version_of(const kube::Object& object) {
  const std::string text = text_at(object, "resourceVersion");
  std::uint64_t version = ~0ull;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

Cache::Cache(kube::Client& client, std::string name_space, std::vector<kube::Kind> kinds,
             std::function<void()> changed)
    : client_(client), name_space_(std::move(name_space)), kinds_(std::move(kinds)), changed_(std::move(changed)),
      thread_([this] { run(); }) {}

Cache::~Cache() {
  stop_ = true;
  thread_.join();
}

std::vector<kube::Object> Cache::list(const kube::Kind& kind) const {
  std::lock_guard lock(mutex_);
  std::vector<kube::Object> found;
  for (auto it = objects_.lower_bound({kind, ""}); it != objects_.end() && it->first.first == kind; ++it)
    found.push_back(it->second);
  return found;
}

std::optional<kube::Object> Cache::get(const kube::Kind& kind, const std::string& name) const {
  std::lock_guard lock(mutex_);
  const auto it = objects_.find({kind, name});
  if (it == objects_.end()) return std::nullopt;
  return it->second;
}

void Cache::put(const kube::Object& object) { take({kube::EventType::kModified, object}); }

bool Cache::take(const kube::WatchEvent& event) {
  Name name{kind_of(event.object), name_of(event.object)};
  std::lock_guard lock(mutex_);
  const auto it = objects_.find(name);
  if (event.type == kube::EventType::kDeleted) {
    // Deleted and made anew: only the one that was meant goes.
    if (it == objects_.end() || text_at(it->second, "uid") != text_at(event.object, "uid")) return false;
    objects_.erase(it);
    return true;
  }
  if (it == objects_.end()) {
    objects_.emplace(std::move(name), event.object);
    return true;
  }
  if (version_of(event.object) < version_of(it->second)) return false;
  const bool news = text_at(it->second, "resourceVersion") != text_at(event.object, "resourceVersion");
  it->second = event.object;
  return news;
}

void Cache::run() {
  std::string cursor;
  while (!stop_) {
    auto events = client_.wait(kinds_, name_space_, cursor, kWait);
    if (!events) {
      log_warning("watching objects failed", {{"error", events.error().message}});
      std::this_thread::sleep_for(kWait);
      continue;
    }
    bool news = false;
    for (const kube::WatchEvent& event : *events) news |= take(event);
    if (!filled_.exchange(true) || news) changed_();
  }
}

}  // namespace bsp::reconcile
