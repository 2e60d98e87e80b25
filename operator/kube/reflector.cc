#include "operator/kube/reflector.h"

#include <format>

#include "base/core/log.h"
#include "base/core/metric.h"
#include "operator/kube/fields.h"

namespace bsp::kube {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;
constexpr auto kFirstPause = milliseconds(200);
constexpr auto kLastPause = std::chrono::seconds(15);
constexpr auto kShortWatch = std::chrono::seconds(1);

std::string key_in(const Object& object) {
  return metadata_text(object, "namespace") + "/" + metadata_text(object, "name");
}

}  // namespace

Reflector::Reflector(Api& api, Resources& resources, Kind kind, std::string name_space, Feed& feed,
                     ReflectorOptions options)
    : api_(api),
      resources_(resources),
      kind_(std::move(kind)),
      name_space_(std::move(name_space)),
      feed_(feed),
      options_(std::move(options)),
      thread_([this] { run(); }) {}

Reflector::~Reflector() { thread_.join(); }

void Reflector::run() {
  for (;;) {
    if (!listed_) {
      if (auto done = list(); !done) {
        log_failure(done.error());
        if (first_) feed_.failed(done.error());
        if (!pause()) return;
        continue;
      }
      if (std::exchange(first_, false)) feed_.complete();
      listed_ = true;
      failures_ = 0;
    }
    const auto began = Steady::now();
    const std::string version = version_;
    End end = watch();
    if (end == End::kRelist) listed_ = false;
    // A watch that ends at once without an event is a failure too.
    if (end == End::kResume && version == version_ && Steady::now() - began < kShortWatch) end = End::kFailed;
    if (end == End::kResume)
      failures_ = 0;
    else if (!pause())
      return;
    if (!api_.http().sleep_until(Steady::now())) return;
  }
}

namespace {
Metric watches_begun(Metric::Type::kCounter, "bsp_watches_total", "Watches of the API server begun.", {"kind"});
Metric lists_begun(Metric::Type::kCounter, "bsp_lists_total",
                   "Lists of all objects of a kind: one at the start, more where a watch could not go on.", {"kind"});
}  // namespace

bool Reflector::pause() {
  const auto pause =
      std::max(backoff(failures_++, kFirstPause, kLastPause), std::exchange(asked_pause_, milliseconds(0)));
  return api_.http().sleep_until(Steady::now() + pause);
}

void Reflector::log_failure(const Error& error) {
  // Single failures are normal. Log only persistent ones, and not each time.
  const bool closed = !api_.http().sleep_until(Steady::now());
  if (closed || failures_ % 8 != 2) return;
  log_warning("failed to watch the API server, will retry", {{"kind", kind_.kind}, {"error", error.message}});
}

Result<void> Reflector::list() {
  lists_begun.add({kind_.kind});
  BSP_TRY(resource_, resources_.find(kind_));
  std::set<std::string> listed;
  std::string next;
  std::string version;
  auto began = Steady::now();
  do {
    const std::string target = std::format("{}?limit={}{}", resource_.collection(name_space_), options_.page,
                                           next.empty() ? "" : "&continue=" + percent_encode(next));
    BSP_TRY(const Answer answer, api_.send({.target = target}));
    if (answer.status == 404) resources_.forget(kind_.api_version);
    if (answer.status == 410 && !next.empty()) {  // the list took so long that its version expired: start over
      next.clear();
      listed.clear();
      began = Steady::now();
      if (!api_.http().sleep_until(Steady::now() + jittered(kFirstPause)))
        return fail(ErrorCode::kUnavailable, "the API client is closed");
      continue;
    }
    if (!answer.ok()) return std::unexpected(error_of(answer.status, answer.body));
    BSP_TRY(Object page, parse_object(answer.body, target));
    const Object& metadata = part_at(page, "metadata");
    version = text_at(metadata, "resourceVersion");
    next = text_at(metadata, "continue");
    std::vector<WatchEvent> events;
    if (page.contains("items") && page["items"].is_array())
      for (Object& item : page["items"]) {
        listed.insert(key_in(item));
        note(std::move(item), events, began);
      }
    if (!feed_.push(std::move(events))) return fail(ErrorCode::kUnavailable, "the API client is closed");
  } while (!next.empty());
  std::vector<std::string> deleted;
  for (const auto& [key, seen] : seen_)
    if (!listed.contains(key)) deleted.push_back(key);
  std::ranges::sort(deleted);
  std::vector<WatchEvent> events;
  for (const std::string& key : deleted) note_deleted(key, events);
  if (!feed_.push(std::move(events))) return fail(ErrorCode::kUnavailable, "the API client is closed");
  version_ = version;
  return {};
}

void Reflector::note(Object object, std::vector<WatchEvent>& events, decltype(WatchEvent::listed) listed) {
  if (metadata_text(object, "name").empty()) return;
  // Items in a list of a built-in kind have neither.
  if (!object.contains("apiVersion")) object["apiVersion"] = kind_.api_version;
  if (!object.contains("kind")) object["kind"] = kind_.kind;
  const std::string key = key_in(object);
  Seen now{metadata_text(object, "uid"), metadata_text(object, "resourceVersion")};
  const auto before = seen_.find(key);
  if (before != seen_.end() && before->second.uid == now.uid) {
    // Already reported, or out of date.
    if (!listed && (before->second.version == now.version || is_older(now.version, before->second.version))) return;
    before->second.version = std::move(now.version);
    if (options_.trim) options_.trim(object);
    events.push_back({EventType::kModified, std::move(object), listed});
    return;
  }
  if (before != seen_.end()) note_deleted(key, events);  // deleted and recreated
  seen_[key] = std::move(now);
  if (options_.trim) options_.trim(object);
  events.push_back({EventType::kAdded, std::move(object), listed});
}

void Reflector::note_deleted(const std::string& key, std::vector<WatchEvent>& events) {
  const auto it = seen_.find(key);
  if (it == seen_.end()) return;
  const auto slash = key.find('/');
  Object object = {
      {"apiVersion", kind_.api_version},
      {"kind", kind_.kind},
      {"metadata",
       {{"name", key.substr(slash + 1)}, {"uid", it->second.uid}, {"resourceVersion", it->second.version}}}};
  if (slash > 0) object["metadata"]["namespace"] = key.substr(0, slash);
  events.push_back({EventType::kDeleted, std::move(object)});
  seen_.erase(it);
}

Reflector::End Reflector::watch() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(jittered(options_.watch));
  const auto deadline = Steady::now() + seconds + options_.grace;
  api_.count_request();
  watches_begun.add({kind_.kind});
  HttpStream stream = api_.http().stream(
      {.target = std::format("{}?watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                             resource_.collection(name_space_), percent_encode(version_), seconds.count())});
  const auto head = stream.head(std::min(deadline, Steady::now() + api_.options().attempt));
  if (!head) {
    log_failure(head.error().error);
    return End::kFailed;
  }
  if (head->retry_after) asked_pause_ = jittered(*head->retry_after);
  const bool refused = head->status < 200 || head->status >= 300;
  std::string rest;  // an incomplete line
  for (;;) {
    auto piece = stream.read(deadline);
    if (!piece) {
      // Drop an incomplete line: the next watch starts before it.
      log_failure(piece.error().error);
      return refused ? End::kFailed : End::kResume;
    }
    if (piece->empty()) break;
    rest += *piece;
    if (refused) continue;
    std::size_t from = 0;
    for (std::size_t to; (to = rest.find('\n', from)) != std::string::npos; from = to + 1)
      if (to > from)
        if (const End end = take_line(std::string_view(rest).substr(from, to - from)); end != End::kResume) return end;
    rest.erase(0, from);
  }
  if (!refused) return End::kResume;
  if (head->status == 410) return End::kRelist;
  if (head->status == 404) {
    resources_.forget(kind_.api_version);
    return End::kRelist;
  }
  log_failure(error_of(head->status, rest));
  return End::kFailed;
}

Reflector::End Reflector::take_line(std::string_view line) {
  auto event = parse_object(line, "watch");
  if (!event) return End::kFailed;
  const std::string type = text_at(*event, "type");
  if (!event->contains("object")) return End::kFailed;
  Object& object = (*event)["object"];
  if (type == "ERROR") {
    const Object& code = part_at(object, "code");
    if (code.is_number_integer() && code == 410) return End::kRelist;
    log_failure(Error{ErrorCode::kUnavailable, text_at(object, "message"), true});
    return End::kFailed;
  }
  const std::string version = metadata_text(object, "resourceVersion");
  // Events arrive in the order of their versions. If not, something between us and the server is broken.
  if (is_older(version, version_)) return End::kRelist;
  std::vector<WatchEvent> events;
  if (type == "ADDED" || type == "MODIFIED") {
    note(std::move(object), events);
  } else if (type == "DELETED") {
    const std::string key = key_in(object);
    const auto it = seen_.find(key);
    if (it != seen_.end() && it->second.uid == metadata_text(object, "uid")) {
      seen_.erase(it);
      if (!object.contains("apiVersion")) object["apiVersion"] = kind_.api_version;
      if (!object.contains("kind")) object["kind"] = kind_.kind;
      if (options_.trim) options_.trim(object);
      events.push_back({EventType::kDeleted, std::move(object)});
    }
  } else if (type != "BOOKMARK") {
    return End::kFailed;
  }
  if (!version.empty()) version_ = version;
  failures_ = 0;
  return feed_.push(std::move(events)) ? End::kResume : End::kFailed;
}

}  // namespace bsp::kube
