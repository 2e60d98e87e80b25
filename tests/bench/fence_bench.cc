// What one fence of an epoch costs 1,000 and 4,000 ranks of as many pods: the real AllGather of each pod's sidecar, all in this process, on
// a modelled network.
//
//   out, in  bytes that the rank sends or receives that does most of it, and the root
//   network  from the last rank's part until the last rank has the whole, where each pod has a link of 10 Gbit/s and a message takes
//            50 us more; without what processors do
//   CPU      time of this process divided by the ranks: what a sidecar computes, without encryption
//
// Arguments: numbers of ranks (default 1000 4000). BSP_PART: bytes of each rank (default 200; measured: docs/benchmarks.md).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "crds/requests.h"
#include "crds/wire.h"
#include "sidecar/agent/pmix/all_gather.h"

namespace bsp::bench {
namespace {

using pmix::AllGather;
using pmix::Gathered;

constexpr double kBytesPerSecond = 10e9 / 8, kLatency = 50e-6;
constexpr std::size_t kHeader = 200;  // of a message, about

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Messages in the order in which they arrive. A pod sends one after the other, and takes one after the other.
class Network {
 public:
  explicit Network(std::uint32_t pods) : out_free_(pods), in_free_(pods), out_(pods), in_(pods) {}

  void send(std::uint32_t from, std::uint32_t to, std::size_t bytes, std::move_only_function<void()> arrive) {
    bytes += kHeader;
    const double takes = static_cast<double>(bytes) / kBytesPerSecond;
    out_free_[from] = std::max(out_free_[from], now_) + takes;
    in_free_[to] = std::max(in_free_[to] + takes, out_free_[from] + kLatency);
    out_[from] += bytes;
    in_[to] += bytes;
    under_way_.emplace(std::pair(in_free_[to], ++sent_), std::move(arrive));
  }
  bool deliver_next() {
    if (under_way_.empty()) return false;
    auto first = under_way_.extract(under_way_.begin());
    now_ = first.key().first;
    first.mapped()();
    return true;
  }
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] const std::vector<std::size_t>& out() const { return out_; }
  [[nodiscard]] const std::vector<std::size_t>& in() const { return in_; }

 private:
  double now_ = 0;  // s
  std::vector<double> out_free_, in_free_;
  std::vector<std::size_t> out_, in_;
  std::map<std::pair<double, std::uint64_t>, std::move_only_function<void()>> under_way_;
  std::uint64_t sent_ = 0;
};

class Job {
 public:
  explicit Job(std::uint32_t ranks) : network_(ranks) {
    pmix::Placement placement{.server_of = std::vector<std::uint32_t>(ranks)};
    std::iota(placement.server_of.begin(), placement.server_of.end(), 0u);
    for (std::uint32_t from = 0; from < ranks; ++from)
      servers_.push_back(std::make_unique<AllGather>(
          loop_, 1, placement, from,
          [this, from](std::uint32_t to, std::string_view verb, nlohmann::json fields, std::string body,
                       net::LinkPeer::Done done) {
            const std::size_t bytes = body.size();
            network_.send(
                from, to, bytes,
                [this, from, to, verb = std::string(verb), fields = std::move(fields), body = kept(std::move(body)),
                 done = std::move(done)]() mutable { arrive(from, to, verb, fields, *body, std::move(done)); });
          }));
  }

  // Seconds until the last has the whole; less than 0: somebody never got it.
  double fence(std::size_t bytes) {
    std::size_t have = 0;
    double last = 0;
    const std::string part(bytes, 'x');
    for (const auto& server : servers_)
      server->enter("fence", {}, part, [&](const Result<Gathered>& all) {
        if (!all || all->data.size() != bytes * servers_.size()) return;
        ++have;
        last = network_.now();
      });
    while (network_.deliver_next()) {
    }
    return have == servers_.size() ? last : -1;
  }
  [[nodiscard]] const Network& network() const { return network_; }

 private:
  // Thousands of copies of the whole are under way at once.
  std::shared_ptr<const std::string> kept(std::string body) {
    if (last_body_ && *last_body_ == body) return last_body_;
    auto next = std::make_shared<const std::string>(std::move(body));
    if (next->size() > 100'000) last_body_ = next;
    return next;
  }
  void answer(std::uint32_t from, std::uint32_t to, net::LinkPeer::Done done, nlohmann::json header) {
    network_.send(from, to, 0, [done = std::move(done), header = std::move(header)]() mutable {
      done(net::Answer{std::move(header), {}});
    });
  }
  void arrive(std::uint32_t from, std::uint32_t to, const std::string& verb, const nlohmann::json& fields,
              const std::string& body, net::LinkPeer::Done done) {
    if (verb == wire::kGather) {
      (void)servers_[to]->gather(fields.at("key").get<std::string>(), from, body);
      return answer(to, from, std::move(done), nlohmann::json::object());
    }
    if (verb != wire::kDeliver) return answer(to, from, std::move(done), nlohmann::json::object());
    const auto asked = wire::read_request<wire::DeliverRequest>(fields).value();
    servers_[to]->deliver(asked.key, Gathered{body, *asked.context_id}, asked.onward,
                          [this, from, to, done = std::move(done)](std::uint64_t onward) mutable {
                            answer(to, from, std::move(done), reflect::write(wire::DeliverAnswer{onward}));
                          });
  }

  net::Loop loop_;
  Network network_;
  std::vector<std::unique_ptr<AllGather>> servers_;
  std::shared_ptr<const std::string> last_body_;
};

nlohmann::json measure(std::uint32_t ranks, std::size_t part) {
  Job job(ranks);
  const double began = cpu_seconds();
  const double network = job.fence(part);
  const double cpu = (cpu_seconds() - began) / ranks;
  const Network& n = job.network();
  const auto megabytes = [](std::size_t bytes) { return static_cast<double>(bytes) * 1e-6; };
  const nlohmann::json row{{"ranks", ranks},
                           {"part", part},
                           {"complete", network >= 0},
                           {"root_out_mb", megabytes(n.out()[0])},
                           {"root_in_mb", megabytes(n.in()[0])},
                           {"most_out_mb", megabytes(*std::ranges::max_element(n.out()))},
                           {"most_in_mb", megabytes(*std::ranges::max_element(n.in()))},
                           {"all_mb", megabytes(std::accumulate(n.out().begin(), n.out().end(), std::size_t{}))},
                           {"network_ms", network * 1e3},
                           {"cpu_ms", cpu * 1e3}};
  std::printf(
      "%6u ranks: root out %.2f MB, in %.2f; most out %.2f, in %.2f; all %.0f MB; network %.1f ms, CPU %.2f ms a "
      "rank%s\n",
      ranks, megabytes(n.out()[0]), megabytes(n.in()[0]), megabytes(*std::ranges::max_element(n.out())),
      megabytes(*std::ranges::max_element(n.in())), row["all_mb"].get<double>(), network * 1e3, cpu * 1e3,
      network >= 0 ? "" : "; NOT COMPLETE");
  return row;
}

}  // namespace
}  // namespace bsp::bench

int main(int argc, char** argv) {
  const char* const given = std::getenv("BSP_PART");
  const std::size_t part = given ? std::strtoull(given, nullptr, 10) : 200;
  std::vector<std::uint32_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)));
  if (sizes.empty()) sizes = {1000, 4000};
  nlohmann::json rows = nlohmann::json::array();
  bool complete = true;
  for (const std::uint32_t ranks : sizes) {
    rows.push_back(bsp::bench::measure(ranks, part));
    complete &= rows.back()["complete"].get<bool>();
  }
  if (const char* const path = std::getenv("BSP_BENCH_JSON")) std::ofstream(path) << rows.dump(1) << '\n';
  return complete ? 0 : 1;
}
