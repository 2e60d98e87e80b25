// What a running job writes to the API server: the shell as the controller runs it, over TLS to an API server in
// memory, with one job whose sidecars answer over real links. Its ranks end a superstep every few milliseconds and
// never become balanced, so a rescheduling call is due as often as alpha allows.
//
// Prints writes per second and bytes per hour by kind, and the superstep of the stored status at the end, as a check
// that progress is still reported.
//
// Arguments: ranks (default 1000), milliseconds of a superstep (5), seconds to measure (30).
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "operator/kinds.h"
#include "operator/reconcile/shell/shell.h"
#include "tests/unit/controller/fake_ranks.h"
#include "tests/unit/controller/install_crds.h"
#include "tests/unit/kube/world.h"

namespace bsp::bench {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using std::chrono::steady_clock;

constexpr int kSets = 4, kNodesOfASet = 10;

struct Written {
  std::uint64_t count = 0, bytes = 0;
};

// The kind of each request: "status", "events", …
class Meter {
 public:
  void note(const kube_test::Request& request) {
    if (request.method == "GET") return;
    const std::string path = request.target.substr(0, request.target.find('?'));
    std::string what = "other";
    for (const char* part : {"events", "rankmigrations", "pods", "secrets", "configmaps"})
      if (path.contains(std::string("/") + part)) what = part;
    if (path.contains("/bspjobs/"))
      what = !path.ends_with("/status") ? "bspjobs" : request.method == "PATCH" ? "status, progress" : "status, whole";
    const std::lock_guard lock(mutex_);
    Written& w = written_[what];
    ++w.count;
    w.bytes += request.body.size();
  }
  std::map<std::string, Written> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(written_, {});
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Written> written_;
};

std::string set_name(int set) { return std::format("set-{}", set); }

void add_nodes(kube::Client& client) {
  for (int set = 0; set < kSets; ++set)
    for (int i = 0; i < kNodesOfASet; ++i) {
      json node = {
          {"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", std::format("{}-{}", set_name(set), i)}, {"labels", {{"pool", set_name(set)}}}}}};
      check(client.create(node).has_value(), "a node can be made");
      node["status"] = {{"allocatable", {{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "500"}}},
                        {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
      check(client.update_status(node).has_value(), "its status can be written");
    }
}

json job_of(unsigned ranks) {
  return {{"apiVersion", "migbsp.io/v1alpha1"},
          {"kind", "BSPJob"},
          {"metadata", {{"name", "job"}, {"namespace", "default"}}},
          {"spec",
           {{"ranks", ranks},
            {"sets", {{"label", "pool"}}},
            {"initialMapping", "RoundRobin"},
            // Never balanced, so that alpha stays unchanged.
            {"rescheduling", {{"mode", "Advise"}, {"alpha", 10}, {"d", 0.05}, {"omega", 1000000}}},
            {"template",
             {{"spec",
               {{"containers",
                 {{{"name", "app"},
                   {"image", "localhost/x"},
                   {"command", {"solver"}},
                   {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}}}}}};
}

json status_of(kube::Client& client) {
  const auto job = client.get({kBspJob, "default", "job"});
  return job ? job->value("status", json::object()) : json::object();
}

int run(unsigned ranks, double superstep_ms, double seconds) {
  Meter meter;
  kube_test::ApiServer api;
  kube_test::TlsServer server(kube_test::Pki::get().server, kube_test::Pki::get().ca.certificate,
                              [&](const kube_test::Request& request, kube_test::Reply& reply) {
                                meter.note(request);
                                api.handle(request, reply);
                              });
  kube::Config config;
  config.server = std::format("https://127.0.0.1:{}", server.port());
  config.ca.text = kube_test::Pki::get().ca.certificate;
  config.token.text = "secret";
  config.source = "the benchmark";
  const auto open = [&] { return std::move(kube::ApiClient::create(config)).value(); };
  const auto client = open(), shells = open();
  controller::install_crds(*client);
  add_nodes(*client);
  controller::FakeRanks played(*client,
                               {.superstep = std::chrono::nanoseconds(static_cast<std::int64_t>(superstep_ms * 1e6)),
                                // The Sets differ, and one rank in ten differs from its Set, in turn.
                                .compute_share = [](std::uint32_t rank, std::uint64_t superstep) {
                                  return 0.2 + 0.2 * (rank % kSets) + (rank % 10 == superstep / 50 % 10 ? 0.1 : 0);
                                }});
  reconcile::Shell shell(*shells, {.name_space = "",
                                   .network = "",
                                   .pods = {.scheduled = true},
                                   .collects_garbage = true,
                                   .workers = 4,
                                   .progress = 10s,
                                   .calls = 10s,
                                   // On a busy machine some of a thousand sidecars in one process are late.
                                   .job_limits = {.unreachable = 10min, .start = 30min},
                                   .reservations_name_space = "default"});
  check(client->create(job_of(ranks)).has_value(), "the job can be made");
  const auto node_of = [](const std::string& set, std::uint32_t rank) {
    return std::format("{}-{}", set, rank / kSets % kNodesOfASet);
  };
  const auto deadline = steady_clock::now() + 10min;
  while (played.bring_up(node_of) < ranks || status_of(*client).value("phase", "") != "Running") {
    if (steady_clock::now() > deadline) {
      std::fprintf(stderr, "the job does not run: %s\n", status_of(*client).value("message", "").c_str());
      return 1;
    }
    std::this_thread::sleep_for(100ms);
  }
  std::this_thread::sleep_for(3s);  // what follows from the start is over
  meter.take();
  const json before = status_of(*client);
  const auto began = steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto written = meter.take();
  const double took = std::chrono::duration<double>(steady_clock::now() - began).count();
  const json after = status_of(*client);
  json metrics = {{"ranks", ranks}, {"superstepMs", superstep_ms}, {"seconds", took}};
  std::printf(
      "%u ranks, a superstep every %.1f ms, %.0f s; alpha %lld; the stored status went from superstep %lld to %lld\n",
      ranks, superstep_ms, took, after.value("alpha", 0LL), before.value("superstep", 0LL),
      after.value("superstep", 0LL));
  std::printf("%-20s %12s %14s %14s\n", "written", "per second", "KiB each", "MiB per hour");
  Written all;
  const auto line = [&](const std::string& what, const Written& w) {
    const double per_second = static_cast<double>(w.count) / took;
    const double per_hour = static_cast<double>(w.bytes) / took * 3600 / (1 << 20);
    const double each = w.count ? static_cast<double>(w.bytes) / static_cast<double>(w.count) / 1024 : 0;
    std::printf("%-20s %12.2f %14.1f %14.1f\n", what.c_str(), per_second, each, per_hour);
    metrics["written"][what] = {{"perSecond", per_second}, {"kibEach", each}, {"mibPerHour", per_hour}};
  };
  for (const auto& [what, w] : written) {
    line(what, w);
    all.count += w.count;
    all.bytes += w.bytes;
  }
  line("all", all);
  if (const char* file = std::getenv("BSP_BENCH_JSON")) std::ofstream(file) << metrics << "\n";
  shells->close();
  return 0;
}

}  // namespace
}  // namespace bsp::bench

int main(int argc, char** argv) {
  const auto number = [&](int i, double otherwise) { return argc > i ? std::atof(argv[i]) : otherwise; };
  return bsp::bench::run(static_cast<unsigned>(number(1, 1000)), number(2, 5), number(3, 30));
}
