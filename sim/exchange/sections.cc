#include "sim/exchange/sections.h"

#include <algorithm>
#include <map>

#include "sim/exchange/gather.h"
#include "sim/exchange/pools.h"

namespace bsp::sim::exchange {

std::string pools_section(const StudyParams& params) {
  Text t;
  const PoolsParams p;
  t.line("## Operator replicas on shared pools\n");
  t.say(
      "Our own case, with another balance: loads change only when somebody decides or a job ends. Replicas place "
      "requests for 1 to {} slots, held {:g} s on",
      p.most_slots, p.hold);
  t.say(
      "average, onto {} pools with {} slots in all for each replica; the requests want {:.0f} % of all slots. Deciding "
      "takes {:g} ms, pods exist {:g} s later,",
      p.pools, p.slots_for_a_replica, p.wanted * 100, p.thinking * 1e3, p.starting);
  t.say(
      "a message costs {:g} µs at either end and travels {:g} µs. {:g} s of requests, at any time or in bursts of one "
      "second every {:g} s. Threshold 0.\n",
      p.message * 1e6, p.latency * 1e6, p.span, p.period);
  std::map<bsp::exchange::Mechanism, PoolsOutcome> sums;
  t.line(
      "| replicas | requests come | mechanism | placed | overbooked | found no room | messages for a decision | wait "
      "(ms) |");
  t.line("| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |");
  for (const std::uint32_t n : {2u, 4u, 16u, 64u, 256u})
    for (const double burst : {0.0, 1.0})
      for (const auto mechanism : {bsp::exchange::Mechanism::kNaive, bsp::exchange::Mechanism::kIncrements,
                                   bsp::exchange::Mechanism::kSnapshot}) {
        const PoolsOutcome r = place_on_pools({.replicas = n, .burst = burst, .seed = params.seed}, mechanism);
        const double decisions = std::max<double>(1, static_cast<double>(r.placed + r.no_room));
        PoolsOutcome& sum = sums[mechanism];
        sum.placed += r.placed;
        sum.overbooked += r.overbooked;
        sum.no_room += r.no_room;
        sum.waited += r.waited;
        t.say("| {} | {} | {} | {} | {} ({:.1f} %) | {} | {:.1f} | {:.1f} |", n,
              burst > 0 ? "in bursts" : "at any time", to_string(mechanism), r.placed, r.overbooked,
              100.0 * static_cast<double>(r.overbooked) / std::max<double>(1, static_cast<double>(r.placed)), r.no_room,
              static_cast<double>(r.messages) / decisions, r.waited / decisions * 1e3);
      }
  t.line("");
  for (const auto& [mechanism, sum] : sums)
    t.say("* {}: {} of {} placements overbooked, {:.1f} ms of waiting for a decision.", to_string(mechanism),
          sum.overbooked, sum.placed, sum.waited / static_cast<double>(sum.placed + sum.no_room) * 1e3);
  t.line("");
  t.line(
      "Loads change as seldom as decisions are made here, so that Increments has little to tell and a snapshot is the "
      "dearer way. Snapshots are serial:");
  t.line("with many replicas that decide in bursts, their turn is what limits them.\n");
  return std::move(t.text);
}

std::string gathering_section(const StudyParams& params) {
  Text t;
  t.line("## Gathering reports: flat, or by Set Managers\n");
  t.line(
      "One round: the operator has the report of every rank, for one superstep and for a window of ten. Flat: it asks "
      "every rank. Set Managers: it asks");
  t.say(
      "one rank of each of {} Sets, which asks the others and passes the reports on whole (`setReport`, what the "
      "sidecars do). Condensed: a manager",
      params.gather.sets);
  t.say(
      "passes on {:g} bytes for a rank (its best target and PM, as in MigBSP's sources). A message costs {:g} µs of "
      "CPU at either end and {:g} ns for",
      params.gather.condensed_bytes, params.gather.message * 1e6, params.gather.byte * 1e9);
  t.say(
      "each byte of JSON, interfaces take {:g} Gbit/s, latency is {:g} µs to the operator and {:g} µs inside a Set; a "
      "report has {:.0f} bytes and {:.0f} for each",
      params.gather.interface * 8e-9, params.gather.latency_between * 1e6, params.gather.latency_within * 1e6,
      params.gather.report_bytes, params.report_superstep_bytes);
  t.line("superstep, as `crds/wire.h` writes one with figures of the usual length.\n");
  t.line(
      "| ranks | supersteps | way | messages | of them the operator's | its connections | it receives (MB) | its CPU "
      "(ms) | latency (ms) |");
  t.line("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
  for (const std::uint32_t ranks : {1'000u, 10'000u, 100'000u})
    for (const double supersteps : {1.0, 10.0})
      for (const auto& [way, name] :
           {std::pair{Gathering::kFlat, "flat"}, std::pair{Gathering::kManagers, "Set Managers"},
            std::pair{Gathering::kCondensed, "condensed"}}) {
        GatherParams g = params.gather;
        g.ranks = ranks;
        g.report_bytes += supersteps * params.report_superstep_bytes;
        const Gathered r = gather(way, g);
        t.say("| {} | {:.0f} | {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} |", ranks, supersteps, name, r.messages,
              r.operator_messages, r.connections, r.operator_bytes * 1e-6, r.operator_cpu * 1e3, r.latency * 1e3);
      }
  t.line("");
  t.line("By number of Sets, 100,000 ranks and one superstep:\n");
  t.line("| Sets | the operator's messages | its CPU (ms) | latency (ms) | condensed: CPU (ms) | latency (ms) |");
  t.line("| ---: | ---: | ---: | ---: | ---: | ---: |");
  for (const std::uint32_t sets : {1u, 4u, 16u, 64u, 256u}) {
    GatherParams g = params.gather;
    g.ranks = 100'000;
    g.sets = sets;
    g.report_bytes += params.report_superstep_bytes;
    const Gathered r = gather(Gathering::kManagers, g);
    const Gathered c = gather(Gathering::kCondensed, g);
    t.say("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |", sets, r.operator_messages, r.operator_cpu * 1e3,
          r.latency * 1e3, c.operator_cpu * 1e3, c.latency * 1e3);
  }
  t.line("");
  t.line(
      "Set Managers take connections and messages from the operator, two for each Set instead of two for each rank, "
      "and every manager's round runs beside");
  t.line(
      "the others'. What they pass on whole costs the operator its bytes all the same; only condensing removes those.");
  return std::move(t.text);
}

}  // namespace bsp::sim::exchange
