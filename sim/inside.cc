#include "sim/inside.h"

#include <xbt/log.h>
#include <simgrid/s4u.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <format>
#include <limits>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "sim/child.h"
#include "sim/routes.h"

namespace bsp::sim {
namespace {

namespace sg = simgrid::s4u;

// A byte costs 1 / bandwidth and a message its latencies; there are no other costs.
void choose_models() {
  xbt_log_control_set("root.thresh:warning");
  for (const char* setting :
       {"network/model:CM02", "network/optim:Lazy", "network/latency-factor:1", "network/bandwidth-factor:1",
        "network/weight-S:0", "network/TCP-gamma:0", "network/crosstraffic:no", "cpu/model:Cas01"})
    sg::Engine::set_config(setting);
}

// --- A platform from values ----------------------------------------------------------------------------------------

constexpr double kNeverNarrow = 1e18;  // bytes/s; stands for an infinite bandwidth that has a latency

const sg::Link* add_link(sg::NetZone* zone, const std::string& name, const Link& link) {
  auto* out = zone->add_split_duplex_link(name, std::min(link.bandwidth, kNeverNarrow));
  out->set_latency(link.latency);
  if (!link.shared)
    for (sg::Link* way : {out->get_link_up(), out->get_link_down()})
      way->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
  return out;
}

using Way = std::vector<sg::LinkInRoute>;
constexpr auto kUp = sg::LinkInRoute::Direction::UP;
constexpr auto kDown = sg::LinkInRoute::Direction::DOWN;

bool does_nothing(const Link& link) { return std::isinf(link.bandwidth) && link.latency == 0; }

// Builds the platform. Returns for each Set the host at its gateway, which stores messages from and to other Sets.
std::vector<sg::Host*> build(const Platform& platform, sg::NetZone* root) {
  const Result<Routes> routes = find_routes(platform);
  if (!routes) throw std::invalid_argument(routes.error().message);
  std::vector<sg::NetZone*> zones;
  std::vector<sg::Host*> gateways;
  std::vector<const sg::Link*> uplinks, trunks;
  for (const Set& set : platform.sets) {
    sg::NetZone* zone = zones.emplace_back(root->add_netzone_star("set " + set.name));
    for (const Node& node : set.nodes) {
      const sg::Host* host = zone->add_host(node.name, node.speed);
      zone->add_route(host, nullptr, {{add_link(zone, "link of " + node.name, set.link), kUp}}, true);
    }
    // SimGrid requires at least one link on each way.
    sg::Link* inside =
        zone->add_link("nothing in " + set.name, kNeverNarrow)->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
    gateways.push_back(zone->add_host("gateway of set " + set.name, 1));
    zone->add_route(gateways.back(), nullptr, std::vector<const sg::Link*>{inside});
    zone->set_gateway(zone->add_router("switch of set " + set.name));
    zone->seal();
    uplinks.push_back(does_nothing(set.uplink) ? nullptr : add_link(root, "uplink of set " + set.name, set.uplink));
  }
  for (std::size_t t = 0; t < platform.trunks.size(); ++t)
    trunks.push_back(does_nothing(platform.trunks[t].link)
                         ? nullptr
                         : add_link(root, std::format("trunk {}", t), platform.trunks[t].link));
  // SimGrid requires at least one link between two zones.
  sg::Link* nothing =
      root->add_link("nothing between", kNeverNarrow)->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
  for (std::size_t a = 0; a < zones.size(); ++a)
    for (std::size_t b = 0; b < zones.size(); ++b) {
      if (a == b) continue;
      Way way;
      if (uplinks[a] != nullptr) way.emplace_back(uplinks[a], kUp);
      for (const Hop& hop : routes->trunks[a, b])
        if (trunks[hop.trunk] != nullptr) way.emplace_back(trunks[hop.trunk], hop.forwards ? kUp : kDown);
      if (uplinks[b] != nullptr) way.emplace_back(uplinks[b], kDown);
      if (way.empty()) way.emplace_back(nothing);
      root->add_route(zones[a], zones[b], way, false);
    }
  return gateways;
}

// --- Supersteps ----------------------------------------------------------------------------------------------------

class Machine {
 public:
  explicit Machine(const Platform& platform)
      : engine_("bsp-simulate"),
        delivery_(platform.delivery),
        departure_(platform.departure),
        forwarding_(platform.forwarding) {
    choose_models();
    std::vector<sg::Host*> gateways(platform.sets.size(), nullptr);
    if (platform.file.empty())
      gateways = build(platform, engine_.get_netzone_root());
    else
      engine_.load_platform(platform.file);
    engine_.seal_platform();
    for (std::size_t j = 0; j < platform.sets.size(); ++j)
      for (const Node& node : platform.sets[j].nodes) {
        hosts_.push_back(engine_.host_by_name(node.host.empty() ? node.name : node.host));
        gateways_.push_back(gateways[j]);
        share_.push_back(1 - node.load);
      }
  }

  SuperstepTimes run(const SuperstepOrder& order) {
    const double start = sg::Engine::get_clock();
    std::vector<sg::ExecPtr> execs;
    std::unordered_map<std::uint32_t, sg::ExecPtr> of_rank;
    for (const SuperstepOrder::Work& work : order.works) {
      execs.push_back(sg::Exec::init());
      execs.back()->set_flops_amount(work.instructions / share_[work.processor]);
      execs.back()->set_host(hosts_[work.processor]);
      of_rank.emplace(work.rank, execs.back());
    }
    const std::vector<Transit> transits = transfers_of(order, of_rank);
    if (departure_ == Departure::kAllReady) {
      for (const sg::ExecPtr& exec : execs) exec->start();
      engine_.run();
      for (const Transit& transit : transits) transit.start();
    } else {
      for (const Transit& transit : transits) transit.start();
      for (const sg::ExecPtr& exec : execs) exec->start();
    }
    engine_.run();
    SuperstepTimes times;
    for (const sg::ExecPtr& exec : execs) times.works.push_back(span(*exec, start));
    for (const Transit& transit : transits)
      times.transfers.push_back({span(*transit.first, start).begin, span(*transit.last, start).end});
    return times;
  }

 private:
  // A message: one activity, or one to the receiver's gateway and a last one from there.
  struct Transit {
    sg::CommPtr first, last;
    void start() const {  // what has a predecessor starts after it
      first->start();
      if (last != first) last->start();
    }
  };

  [[nodiscard]] Transit transit_of(const SuperstepOrder::Transfer& transfer) const {
    const auto comm = [&transfer](sg::Host* from, sg::Host* to) {
      sg::CommPtr out = sg::Comm::sendto_init(from, to);
      out->set_payload_size(static_cast<std::uint64_t>(std::llround(transfer.bytes)));
      return out;
    };
    sg::Host *from = gateways_[transfer.from], *to = gateways_[transfer.to];
    if (forwarding_ == Forwarding::kThrough || from == to) {
      sg::CommPtr whole = comm(hosts_[transfer.from], hosts_[transfer.to]);
      return {whole, whole};
    }
    Transit out{comm(from, to), comm(to, hosts_[transfer.to])};
    out.first->add_successor(out.last);
    return out;
  }

  std::vector<Transit> transfers_of(const SuperstepOrder& order,
                                    const std::unordered_map<std::uint32_t, sg::ExecPtr>& of_rank) const {
    std::vector<Transit> transits;
    std::unordered_map<std::uint32_t, sg::CommPtr> last_to;
    for (const SuperstepOrder::Transfer& transfer : order.transfers) {
      Transit transit = transit_of(transfer);
      if (departure_ == Departure::kSenderReady)
        if (const auto exec = of_rank.find(transfer.from_rank); exec != of_rank.end())
          exec->second->add_successor(transit.first);
      if (delivery_ == Delivery::kInTurn) {
        sg::CommPtr& last = last_to[transfer.to_rank];
        if (last != nullptr) last->add_successor(transit.first);
        last = transit.last;
      }
      transits.push_back(std::move(transit));
    }
    return transits;
  }

  // Rounds to the nanosecond, SimGrid's own precision, so that a superstep takes the same time whenever it is
  // simulated.
  static SuperstepTimes::Span span(const sg::Activity& activity, double start) {
    if (!activity.is_done()) throw std::runtime_error("an activity of a superstep did not finish");
    const auto since = [start](double t) { return std::round((t - start) * 1e9) * 1e-9; };
    return {since(activity.get_start_time()), since(activity.get_finish_time())};
  }

  sg::Engine engine_;
  Delivery delivery_;
  Departure departure_;
  Forwarding forwarding_;
  std::vector<sg::Host*> hosts_, gateways_;  // by processor; no gateways with a platform file
  std::vector<double> share_;                // of the processor that the ranks get
};

template <class Value>
std::span<std::byte> raw(std::vector<Value>& values) {
  return std::as_writable_bytes(std::span(values));
}

}  // namespace

void serve_supersteps(const Platform& platform, int channel) {
  Machine machine(platform);
  SuperstepOrder order;
  for (std::array<std::uint64_t, 2> sizes{}; read_fully(channel, std::as_writable_bytes(std::span(sizes)));) {
    order.works.resize(sizes[0]);
    order.transfers.resize(sizes[1]);
    if (!read_fully(channel, raw(order.works)) || !read_fully(channel, raw(order.transfers))) return;
    SuperstepTimes times = machine.run(order);
    if (!write_fully(channel, raw(times.works)) || !write_fully(channel, raw(times.transfers))) return;
  }
}

// --- A platform file -----------------------------------------------------------------------------------------------

namespace {

using nlohmann::json;

// SimGrid accepts the file, but the simulation can't use it.
struct Unusable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct FileReader {
  std::vector<std::string> names;  // of the Sets, in the order of their first hosts
  std::map<std::string, std::vector<sg::Host*>> hosts;
  json properties = json::object();  // of the zones; an outer zone's wins

  void read(const sg::NetZone& zone, const std::string& set_around) {
    for (const auto& [key, value] : *zone.get_properties())
      if (!properties.contains(key)) properties[key] = value;
    const char* own = zone.get_property("set");
    const std::string set = own != nullptr ? own : set_around;
    std::vector<sg::Host*> of_zone = zone.get_all_hosts();  // in SimGrid's own order
    std::ranges::sort(
        of_zone, [](const sg::Host* a, const sg::Host* b) { return ::strverscmp(a->get_cname(), b->get_cname()) < 0; });
    for (sg::Host* host : of_zone) {
      const char* of_host = host->get_property("set");
      const std::string name = of_host != nullptr ? of_host : set.empty() ? zone.get_name() : set;
      if (!hosts.contains(name)) names.push_back(name);
      hosts[name].push_back(host);
    }
    for (const sg::NetZone* inner : zone.get_children()) read(*inner, set);
  }

  static double seconds_per_byte(const sg::Host* from, const sg::Host* to) {
    const std::string way = std::format("from host {} to host {}", from->get_name(), to->get_name());
    std::vector<sg::Link*> links;
    double latency = 0;
    from->route_to(to, links, &latency);
    if (links.empty()) throw Unusable(std::format("no route {}: add a <route>, <zoneRoute> or <link>", way));
    double least = std::numeric_limits<double>::infinity();
    for (const sg::Link* link : links) {
      if (!(link->get_bandwidth() > 0))
        throw Unusable(std::format("link {}, {}: the bandwidth must be above 0", link->get_name(), way));
      least = std::min(least, link->get_bandwidth());
    }
    return 1 / least;
  }
};

json described_hosts_and_routes(const sg::Engine& engine) {
  FileReader reader;
  reader.read(*engine.get_netzone_root(), "");
  json out{{"sets", json::array()}, {"T", json::array()}, {"properties", reader.properties}};
  for (const std::string& name : reader.names) {
    json hosts = json::array(), T = json::array();
    for (const sg::Host* host : reader.hosts[name]) {
      if (!std::isfinite(host->get_speed()))
        throw Unusable(std::format("host {}: the speed must be a number above 0", host->get_name()));
      hosts.push_back({{"name", host->get_name()},
                       {"speed", host->get_speed()},
                       {"cores", host->get_core_count()},
                       {"properties", *host->get_properties()}});
    }
    out["sets"].push_back({{"name", name}, {"hosts", hosts}});
    for (const std::string& other : reader.names) {
      const std::vector<sg::Host*>&from = reader.hosts[name], &to = reader.hosts[other];
      const sg::Host* target = name != other ? to.front() : to.size() > 1 ? to[1] : nullptr;
      T.push_back(target == nullptr ? 0 : FileReader::seconds_per_byte(from.front(), target));
    }
    out["T"].push_back(T);
  }
  return out;
}

}  // namespace

std::string describe_platform_file(const std::string& path) {
  sg::Engine engine("bsp-simulate");
  choose_models();
  engine.load_platform(path);
  engine.seal_platform();
  try {
    return described_hosts_and_routes(engine).dump(-1, ' ', false, json::error_handler_t::replace);
  } catch (const Unusable& why) {
    return json{{"unusable", why.what()}}.dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

}  // namespace bsp::sim
