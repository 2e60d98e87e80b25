#include "operator/reconcile/capacity/bookings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json/bounded.h"
#include "base/json/fields.h"

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

json to_line(const Booking& b) {
  json seats = json::array();
  for (const Seat& s : b.seats) seats.push_back({{"pod", s.pod}, {"rank", s.rank}, {"set", s.set}, {"node", s.node}});
  return {{"uid", b.uid},
          {"wave", b.wave},
          {"until", to_rfc3339(b.until)},
          {"cpuMilli", b.each.cpu},
          {"memoryBytes", b.each.memory},
          {"checkpointBytes", b.checkpoint},
          {"seats", std::move(seats)}};
}

// Of one line of a ConfigMap, which holds a MiB: who may write ConfigMaps there must not cost us a hundred times that.
constexpr JsonLimits kLineLimits{.bytes = 1 << 20, .values = 100'000, .depth = 4};

// Empty if it says nothing.
Booking from_line(const std::string& line) {
  const auto parsed = parse_bounded(line, kLineLimits);
  Booking b;
  if (!parsed || !parsed->is_object()) return b;
  const json& j = *parsed;
  b.uid = text_at(j, "uid");
  b.wave = count_at<std::uint32_t>(j, "wave");
  b.until = from_rfc3339(text_at(j, "until"));
  b.each = {count_at<std::int64_t>(j, "cpuMilli"), count_at<std::int64_t>(j, "memoryBytes"), 1};
  b.checkpoint = count_at<std::int64_t>(j, "checkpointBytes");
  const json& seats = part_at(j, "seats");
  if (seats.is_array())
    for (const json& s : seats)
      if (const std::string pod = text_at(s, "pod"); !pod.empty())
        b.seats.push_back({pod, count_at<std::uint32_t>(s, "rank"), text_at(s, "set"), text_at(s, "node")});
  return b;
}

}  // namespace

Bookings bookings_from_json(const json& object) {
  Bookings bookings;
  bookings.version = text_at(part_at(object, "metadata"), "resourceVersion");
  const json& data = part_at(object, "data");
  if (!data.is_object()) return bookings;
  for (const auto& [key, value] : data.items()) {
    if (!value.is_string()) continue;
    Booking booking = from_line(value.get_ref<const std::string&>());
    if (!booking.seats.empty()) bookings.of_job.emplace(job_of_key(key), std::move(booking));
  }
  return bookings;
}

json booking_data(const Bookings& bookings) {
  json data = json::object();
  for (const auto& [job, booking] : bookings.of_job) data[data_key(job)] = to_line(booking).dump();
  return data;
}

void drop_expired(Bookings& bookings, Time now) {
  std::erase_if(bookings.of_job, [&](const auto& entry) { return now > entry.second.until; });
}

bool is_to_be_renewed(const Booking& booking, Time now) { return now + kBookingKept / 2 > booking.until; }

std::map<std::string, Resources> booked_by_others(
    const Bookings& bookings, const std::string& job,
    const std::function<bool(const std::string& name_space, const std::string& pod)>& is_placed) {
  std::map<std::string, Resources> booked = bookings.told;
  for (const auto& [other, booking] : bookings.of_job) {
    if (other == job) continue;
    const std::string name_space = other.substr(0, other.find('/'));
    for (const Seat& seat : booking.seats) {
      booked[seat.node].memory += booking.checkpoint;
      if (!is_placed(name_space, seat.pod)) booked[seat.node] += {booking.each.cpu, booking.each.memory, 1};
    }
  }
  return booked;
}

MovesElsewhere moves_elsewhere(const Bookings& bookings, const std::string& job) {
  MovesElsewhere moves = bookings.told_moves;
  for (const auto& [other, booking] : bookings.of_job) {
    if (other == job) continue;
    for (const Seat& seat : booking.seats) ++moves.into[seat.set];
    moves.all += static_cast<std::uint32_t>(booking.seats.size());
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
