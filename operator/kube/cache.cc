#include "operator/kube/cache.h"

#include <algorithm>
#include <utility>

#include "base/core/error.h"
#include "base/core/log.h"
#include "operator/kube/fields.h"

namespace bsp::kube {
namespace {

using namespace std::chrono_literals;
constexpr auto kWatchWait = 250ms;  // changes arrive at once; this bounds how long the destructor takes
constexpr auto kRecheckAfter = 30s;
constexpr std::size_t kMaxDeletedKept = 4096;

std::string pack(const Object& object) {
  std::string packed;
  Object::to_cbor(object, packed);
  packed.shrink_to_fit();
  return packed;
}

Object unpack(const std::string& packed) { return Object::from_cbor(packed, true, /*allow_exceptions=*/false); }

}  // namespace

Cache::Cache(Client& client, CacheOptions options) : client_(client), options_(std::move(options)) {
  for (const CachedKind& spec : options_.kinds) {
    stores_[spec.kind].spec = &spec;
    watch_.kinds.push_back(spec.kind);
  }
  if (options_.own_thread) watch_.thread = std::thread([this] { run(); });
}

Cache::~Cache() {
  stop_ = true;
  if (watch_.thread.joinable()) watch_.thread.join();
}

bool Cache::wait_filled(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return filling_.wait_for(lock, timeout, [&] { return filled_.load(); });
}

const Cache::Store* Cache::store_of(const Kind& kind) const {
  const auto it = stores_.find(kind);
  check(it != stores_.end(), "the cache keeps this kind");
  return &it->second;
}

std::optional<Object> Cache::get(const Key& key) const {
  std::string packed;
  {
    const std::lock_guard lock(mutex_);
    const Store* store = store_of(key.kind);
    const auto it = store->entries.find({key.name_space, key.name});
    if (it == store->entries.end()) return std::nullopt;
    packed = it->second.packed;
  }
  return unpack(packed);
}

std::vector<Object> Cache::unpack_all(const Store& store, const Places& places) const {
  std::vector<Object> found;
  found.reserve(places.size());
  for (const Place* place : places) found.push_back(unpack(store.entries.at(*place).packed));
  return found;
}

std::vector<Object> Cache::list(const Kind& kind, const std::string& name_space) const {
  const std::lock_guard lock(mutex_);
  const Store* store = store_of(kind);
  std::vector<Object> found;
  for (auto it = store->entries.lower_bound({name_space, ""}); it != store->entries.end(); ++it) {
    if (!name_space.empty() && it->first.first != name_space) break;
    found.push_back(unpack(it->second.packed));
  }
  return found;
}

std::vector<Object> Cache::find(const Kind& kind, const std::string& index, const std::string& value) const {
  const std::lock_guard lock(mutex_);
  const Store* store = store_of(kind);
  const auto it = store->indexes.find({index, value});
  return it == store->indexes.end() ? std::vector<Object>{} : unpack_all(*store, it->second);
}

std::size_t Cache::count(const Kind& kind) const {
  const std::lock_guard lock(mutex_);
  return store_of(kind)->entries.size();
}

std::size_t Cache::count(const Kind& kind, const std::string& index, const std::string& value) const {
  const std::lock_guard lock(mutex_);
  const Store* store = store_of(kind);
  const auto it = store->indexes.find({index, value});
  return it == store->indexes.end() ? 0 : it->second.size();
}

std::size_t Cache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void Cache::put(const Object& object) { take(object, false); }

void Cache::drop(const Key& key) {
  std::optional<Object> before;
  const std::lock_guard change(change_);
  {
    const std::lock_guard lock(mutex_);
    Store& store = stores_.at(key.kind);
    const auto it = store.entries.find({key.name_space, key.name});
    if (it == store.entries.end()) return;
    before = unpack(it->second.packed);
    erase(key.kind, store, it);
  }
  if (options_.on_change) options_.on_change(key.kind, &*before, nullptr);
}

void Cache::unindex(Store& store, const Place& place, Entry& entry) {
  for (const Indexes::iterator at : std::exchange(entry.indexed, {})) {
    at->second.erase(&place);
    if (at->second.empty()) store.indexes.erase(at);
  }
}

void Cache::erase(const Kind&, Store& store, std::map<Place, Entry>::iterator it) {
  unindex(store, it->first, it->second);
  bytes_ -= it->second.packed.size();
  if (deleted_.insert_or_assign(it->second.uid, std::chrono::steady_clock::now()).second) {
    deleted_order_.push_back(it->second.uid);
    if (deleted_order_.size() > kMaxDeletedKept) {
      deleted_.erase(deleted_order_.front());
      deleted_order_.pop_front();
    }
  }
  store.entries.erase(it);
}

void Cache::take(Object object, bool from_watch, Moment read) {
  const Kind kind{text_at(object, "apiVersion"), text_at(object, "kind")};
  const Place place{metadata_text(object, "namespace"), metadata_text(object, "name")};
  const std::string uid = metadata_text(object, "uid"), version = metadata_text(object, "resourceVersion");
  std::optional<Object> before;
  const std::lock_guard change(change_);
  {
    const std::lock_guard lock(mutex_);
    const auto found = stores_.find(kind);
    if (found == stores_.end()) return;  // a kind that this cache doesn't keep
    Store& store = found->second;
    if (const auto gone = deleted_.find(uid); gone != deleted_.end()) {
      if (!read || *read <= gone->second) return;
      deleted_.erase(gone);
    }
    if (store.spec->trim) store.spec->trim(object);
    const auto it = store.entries.find(place);
    if (it != store.entries.end()) {
      Entry& old = it->second;
      if (old.uid == uid && old.version == version) {
        old.watched = old.watched || from_watch;
        return;
      }
      // Also of one that was recreated under the same name: the object with the newer version is the later one.
      if (is_older(version, old.version) && (!read || *read <= old.at)) return;
      if (options_.on_change) before = unpack(old.packed);
      unindex(store, it->first, old);
      bytes_ -= old.packed.size();
    }
    const auto placed = store.entries.try_emplace(place).first;
    Entry& entry = placed->second;
    entry.watched = from_watch;
    entry.at = entry.read = std::chrono::steady_clock::now();
    entry.uid = uid;
    entry.version = version;
    entry.packed = pack(object);
    bytes_ += entry.packed.size();
    for (const auto& [index, values_of] : store.spec->indexes)
      for (std::string& value : values_of(object)) {
        const auto at = store.indexes.try_emplace({index, std::move(value)}).first;
        // insert() fails if the indexer returned the value before.
        if (at->second.insert(&placed->first).second) entry.indexed.push_back(at);
      }
  }
  if (options_.on_change) options_.on_change(kind, before ? &*before : nullptr, &object);
}

void Cache::take_deleted(const Object& object) {
  const Kind kind{text_at(object, "apiVersion"), text_at(object, "kind")};
  std::optional<Object> before;
  const std::lock_guard change(change_);
  {
    const std::lock_guard lock(mutex_);
    const auto found = stores_.find(kind);
    if (found == stores_.end()) return;
    const auto it = found->second.entries.find({metadata_text(object, "namespace"), metadata_text(object, "name")});
    // Only if the uid matches: the object may have been recreated under the same name.
    if (it == found->second.entries.end() || it->second.uid != metadata_text(object, "uid")) return;
    if (options_.on_change) before = unpack(it->second.packed);
    erase(kind, found->second, it);
  }
  if (options_.on_change) options_.on_change(kind, &*before, nullptr);
}

void Cache::recheck(std::chrono::steady_clock::time_point before) {
  std::vector<Key> unconfirmed;
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    for (auto& [kind, store] : stores_)
      for (auto& [place, entry] : store.entries)
        if (!entry.watched && entry.read < before) {
          entry.read = now;
          unconfirmed.push_back({kind, place.first, place.second});
        }
  }
  for (const Key& key : unconfirmed) {
    if (stop_) return;
    const auto asked = std::chrono::steady_clock::now();
    auto now = client_.get(key);
    if (now)
      take(std::move(*now), false, asked);
    else if (now.error().code == ErrorCode::kNotFound)
      drop(key);
  }
}

void Cache::run() {
  while (!stop_)
    if (!refresh(kWatchWait)) std::this_thread::sleep_for(kWatchWait);
}

bool Cache::refresh(std::chrono::milliseconds wait) {
  bool complete = false;
  auto events = client_.wait_part(watch_.kinds, options_.name_space, watch_.cursor, wait, complete);
  if (!events) {
    if (watch_.failures++ % 64 == 0)
      log_warning("failed to list objects, will retry", {{"error", events.error().message}});
    return false;
  }
  auto listed = watch_.listed;
  for (WatchEvent& event : *events) {
    listed = std::max(listed, event.listed.value_or(listed));
    if (event.type == EventType::kDeleted)
      take_deleted(event.object);
    else
      take(std::move(event.object), true, event.listed);
  }
  if (complete && !filled_.exchange(true)) {
    const std::lock_guard lock(mutex_);
    filling_.notify_all();
  }
  if (listed != std::exchange(watch_.listed, listed)) recheck(listed);
  if (const auto now = std::chrono::steady_clock::now(); now - watch_.rechecked > kRecheckAfter) {
    watch_.rechecked = now;
    recheck(now - kRecheckAfter);
  }
  return true;
}

}  // namespace bsp::kube
