#include "operator/reconcile/capacity/reservations.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json/bounded.h"
#include "base/json/fields.h"
#include "crds/places.h"
#include "crds/reflect.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

// A namespace has no dot, so the first one divides; a ConfigMap's keys have no slash.
std::string data_key(const std::string& job) {
  std::string key = job;
  std::ranges::replace(key, '/', '.');
  return key;
}

std::string job_of_key(std::string key) {
  if (const std::size_t dot = key.find('.'); dot != std::string::npos) key[dot] = '/';
  return key;
}

json list_of(const std::vector<ReservedSlot>& slots) {
  json list = json::array();
  for (const ReservedSlot& s : slots)
    list.push_back({{"pod", s.pod}, {"rank", s.rank}, {"set", s.set}, {"node", s.node}});
  return list;
}

// A start has a slot for each rank, and a wave may have a thousand, so slots are packed as the ranks of a status are; those of
// ranks that have none are empty. Of a few a list is shorter.
constexpr std::size_t kListed = 16;

bool is_packed(const std::vector<ReservedSlot>& slots) {
  if (slots.size() <= kListed) return false;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (slots[i].pod.empty() || slots[i].rank >= crds::kMostPacked || (i > 0 && slots[i].rank <= slots[i - 1].rank))
      return false;
  return true;
}

json packed(const std::vector<ReservedSlot>& slots) {
  crds::RankPlaces places(slots.back().rank + std::size_t{1});
  for (const ReservedSlot& slot : slots) {
    crds::RankPlace& place = places[slot.rank];
    place.set = slot.set;
    place.node = slot.node;
    place.pod = slot.pod;
    place.generation = crds::generation_after(slot.pod);
  }
  return reflect::write(crds::pack(places));
}

json to_line(const Reservation& b) {
  std::vector<ReservedSlot> slots = b.slots;
  std::ranges::stable_sort(slots, {}, &ReservedSlot::rank);
  json line{{"uid", b.uid},
            {"wave", b.wave},
            {"until", to_rfc3339(b.until)},
            {"cpuMilli", b.each.cpu},
            {"memoryBytes", b.each.memory},
            {"checkpointBytes", b.checkpoint}};
  if (is_packed(slots))
    line["places"] = packed(slots);
  else
    line["slots"] = list_of(b.slots);
  if (b.start) line["start"] = true;
  for (const auto& [name, some] : b.each.extended) line["extended"][name] = some;
  return line;
}

// For one line of a ConfigMap, which holds a MiB: whoever may write ConfigMaps must not cost us a hundred times that.
constexpr JsonLimits kLineLimits{.bytes = 1 << 20, .values = 100'000, .depth = 4};

// They are added up for each slot, and no pod asks for more.
constexpr std::size_t kMostExtended = 32;

// A few bytes can name many ranks, so all lines together must not name more than a cluster has.
std::vector<ReservedSlot> unpacked(const json& places, std::uint64_t& left) {
  std::vector<ReservedSlot> slots;
  const auto packed = reflect::read<crds::PackedPlaces>(places, "places");
  if (!packed || packed->count > left) return slots;
  left -= packed->count;
  crds::RankPlaces ranks;
  if (!crds::unpack(*packed, ranks)) return slots;
  for (crds::RankPlace& place : ranks)
    if (!place.pod.empty())
      slots.push_back({std::move(place.pod), place.rank.value, std::move(place.set), std::move(place.node)});
  return slots;
}

// Empty if it holds none.
Reservation from_line(const std::string& line, std::uint64_t& left) {
  const auto parsed = parse_bounded(line, kLineLimits);
  Reservation b;
  if (!parsed || !parsed->is_object()) return b;
  const json& j = *parsed;
  b.uid = text_at(j, "uid");
  b.wave = count_at<std::uint32_t>(j, "wave");
  b.until = from_rfc3339(text_at(j, "until"));
  const auto asked = [&](const char* name) { return std::min(count_at<std::int64_t>(j, name), kMostAsked); };
  b.each = {asked("cpuMilli"), asked("memoryBytes"), 1};
  if (const json& extended = part_at(j, "extended"); extended.is_object())
    for (const auto& [name, value] : extended.items())
      if (const auto some = count_at<std::int64_t>(extended, name); some > 0 && b.each.extended.size() < kMostExtended)
        b.each.extended[name] = std::min(some, kMostAsked);
  b.checkpoint = asked("checkpointBytes");
  b.start = flag_at(j, "start", false);
  if (const json& places = part_at(j, "places"); places.is_object()) b.slots = unpacked(places, left);
  const json& slots = part_at(j, "slots");
  if (slots.is_array())
    for (const json& s : slots)
      if (const std::string pod = text_at(s, "pod"); !pod.empty())
        b.slots.push_back({pod, count_at<std::uint32_t>(s, "rank"), text_at(s, "set"), text_at(s, "node")});
  return b;
}

}  // namespace

Reservations reservations_from_json(const json& object) {
  Reservations reservations;
  reservations.version = text_at(part_at(object, "metadata"), "resourceVersion");
  const json& data = part_at(object, "data");
  if (!data.is_object()) return reservations;
  std::uint64_t left = crds::kMostPacked;
  for (const auto& [key, value] : data.items()) {
    if (!value.is_string()) continue;
    Reservation reservation = from_line(value.get_ref<const std::string&>(), left);
    if (!reservation.slots.empty()) reservations.of_job.emplace(job_of_key(key), std::move(reservation));
  }
  return reservations;
}

json reservation_data(const Reservations& reservations) {
  json data = json::object();
  for (const auto& [job, reservation] : reservations.of_job) data[data_key(job)] = to_line(reservation).dump();
  return data;
}

void drop_expired(Reservations& reservations, Time now) {
  std::erase_if(reservations.of_job, [&](const auto& entry) { return now > entry.second.until; });
}

bool is_to_be_renewed(const Reservation& reservation, Time now) {
  return now + kReservationKept / 2 > reservation.until;
}

Resources of_one(const Reservation& reservation) {
  Resources one = reservation.each;
  one.pods = 1;
  return one;
}

std::map<std::string, Resources> reserved_by_others(
    const Reservations& reservations, const std::string& job,
    const std::function<bool(const std::string& name_space, const std::string& pod)>& is_placed) {
  std::map<std::string, Resources> reserved = reservations.reported;
  for (const auto& [other, reservation] : reservations.of_job) {
    if (other == job) continue;
    const std::string name_space = other.substr(0, other.find('/'));
    for (const ReservedSlot& slot : reservation.slots) {
      reserved[slot.node].memory += reservation.checkpoint;
      if (!is_placed(name_space, slot.pod)) reserved[slot.node] += of_one(reservation);
    }
  }
  return reserved;
}

MovesElsewhere moves_elsewhere(const Reservations& reservations, const std::string& job) {
  MovesElsewhere moves = reservations.reported_moves;
  for (const auto& [other, reservation] : reservations.of_job) {
    if (other == job || reservation.start) continue;
    for (const ReservedSlot& slot : reservation.slots) ++moves.into[slot.set];
    moves.all += static_cast<std::uint32_t>(reservation.slots.size());
  }
  return moves;
}

std::optional<std::uint32_t> moves_left(const MoveCaps& caps, const MovesElsewhere& elsewhere, const std::string& set,
                                        std::uint32_t own_into_set, std::uint32_t own) {
  std::optional<std::uint32_t> left;
  auto limit = [&](std::uint32_t most, std::uint32_t used) {
    if (most == 0) return;
    const std::uint32_t here = most > used ? most - used : 0;
    left = left ? std::min(*left, here) : here;
  };
  const auto into = elsewhere.into.find(set);
  limit(caps.into_set, own_into_set + (into == elsewhere.into.end() ? 0 : into->second));
  limit(caps.in_cluster, own + elsewhere.all);
  return left;
}

}  // namespace bsp::reconcile
