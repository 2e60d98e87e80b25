// What a decision is made from: the platform, the ranks on it, what a superstep measured, the
// parameters, and the little that is remembered from one rescheduling call to the next.
//
// All of it is plain values. Nothing here reads a clock or does I/O; the operator and the simulator
// fill the same structs. Letters follow the MigBSP papers (Righi et al., "Process rescheduling:
// enabling performance by applying multiple metrics and efficient adaptations", 2010):
//   process i = one MPI rank = one pod,  Set j = a node pool,  processor p = a node or a CPU slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/ids.h"
#include "crds/choices.h"
#include "operator/decide/model/grid.h"
#include "operator/decide/model/sparse_grid.h"

namespace bsp::decide {

using bsp::to_string;
using crds::Heuristic;
using crds::Horizon;
using crds::ObjectiveType;
using Mapping = crds::InitialMapping;

// Where a value comes from; plans and explanations say which of theirs are only assumed.
enum class Origin : std::uint8_t { kAssumed, kMeasured };
constexpr auto names_of(Of<Origin>) { return std::to_array<std::string_view>({"assumed", "measured"}); }

// --- The platform ----------------------------------------------------------------------
struct Processor {
  std::string name{};  // of its node: processors of one name are slots of one node
  SetId set{};
  double cpu = 0;  // cpu(p), instructions/s, > 0
  Origin cpu_origin = Origin::kAssumed;
  double cpu_error = 0;     // standard error, relative, by what slows a processor down for a while; read by Auto alone
  double load = 0;          // load(p), external load (not this job's), 15-minute average, 0 <= load < 1
  std::uint32_t slots = 0;  // ranks it can hold; 0 = any number, they share it (the sources' model)
  std::uint32_t taken = 0;  // slots held by anything but this job's ranks
  bool cordoned = false;    // takes no new rank
  // Ranks that left it may return: it was slow then, and that may be over. Read by Auto alone.
  bool may_return = false;
  double price =
      0;  // of one of its slots, an hour, in the currency of all prices; 0: not known. Read by Auto alone (price.h)
  // The pod whose free seat this slot is: a rank that goes there joins it. 0: none. Read by Auto alone (pods.h).
  std::uint32_t pod = 0;

  [[nodiscard]] double available() const { return cpu * (1 - load); }  // instructions/s
};

struct Set {
  std::string name{};
  bool cordoned = false;  // takes no new rank
  // Its speed is an assumption: no rank has run there, and neither a benchmark nor its nodes say it.
  bool untried = false;
};

// What one rank's messages to another cost it: s/byte, and s for each of them.
struct Price {
  double byte = 0, message = 0;

  bool operator==(const Price&) const = default;
};

struct Platform {
  std::vector<Set> sets{};              // index = SetId
  std::vector<Processor> processors{};  // index = ProcessorId
  Grid<double> T{};                     // T[a, b], s/byte between Set a and Set b
  Grid<Origin> T_origin{};              // same shape, or empty: all assumed
  Grid<double> Mig{};                   // Mig[i, j], s, fixed cost of moving rank i to Set j;
                                        // one row: the same for every rank
  Grid<Origin> Mig_origin{};            // same shape, or empty: all assumed
  // [a, b], bytes/s from Set a to Set b, of all ranks together; 0: not seen to be a limit. Empty: none was. Read by Auto
  // alone (links.h).
  Grid<double> capacity{};
  // By Set, what messages cost between two ranks in it that share a pod, through shared memory, and that don't. From another Set a byte
  // costs T, a message what it costs without a pod in the Set where it is heard. Either none or both; none: pods make no difference, and
  // messages cost nothing. Read by Auto alone (pods.h).
  std::vector<Price> shared{}, apart{};

  [[nodiscard]] const Processor& processor(ProcessorId p) const { return processors[p.value]; }
  [[nodiscard]] std::span<const double> Mig_row(RankId i) const { return Mig.row(Mig.rows() == 1 ? 0 : i.value); }
};

// --- The ranks at a rescheduling call --------------------------------------------------
// One that a rank hears from, and how much.
struct Partner {
  RankId rank{};
  double bytes = 0;     // received from it in a superstep, mean
  double messages = 0;  // in which they came, mean; 0: not known

  bool operator==(const Partner&) const = default;
};
inline constexpr std::size_t kMostPartners = 16;  // of a rank

struct Rank {
  ProcessorId processor{};           // that holds it now
  double memory_bytes = 0;           // M(i)
  Superstep last_move{};             // after which it was last moved; 0 = never (cool-down)
  std::vector<ProcessorId> left{};   // where it was before: Auto doesn't send it back (has_left)
  std::string not_migratable{};      // what keeps it where it is ("open RMA window"); "" = nothing
  std::vector<SetId> no_moves_to{};  // Sets that it can't go to now: its target there did not come up, or …
  std::vector<SetId> cpu_differs{};  // … those of them whose CPUs lack features that its program may use
  std::string cpu_lacks{};           // which: "avx512f, avx512bw"
  // Those that it hears from most, each once, at most kMostPartners; read by Auto alone (partners.h). Empty: not known.
  std::vector<Partner> partners{};
  // Ranks with the same number share a pod; 0: it has one of its own. Read by Auto alone (pods.h).
  std::uint32_t pod = 0;
};

// The world at one rescheduling call. A value: it is filled once and only read (columns.h checks it).
struct Snapshot {
  Platform platform{};
  std::vector<Rank> ranks{};  // index = RankId
  double time_left =
      0;  // s until the deadline of the job, below 0 if it is over; read with Params::objective kDeadline

  [[nodiscard]] SetId set(RankId i) const { return platform.processor(ranks[i.value].processor).set; }
  // Whether it was there before, and that still counts.
  [[nodiscard]] bool has_left(RankId i, ProcessorId p) const {
    return std::ranges::contains(ranks[i.value].left, p) && !platform.processor(p).may_return;
  }
  // Whether it may be put there, in that Set, as far as the rank itself is concerned.
  [[nodiscard]] bool may_go_to(RankId i, ProcessorId p, SetId set) const {
    return !std::ranges::contains(ranks[i.value].no_moves_to, set) && !has_left(i, p);
  }
};

// --- One superstep as measured ---------------------------------------------------------
struct MeasuredSuperstep {
  Superstep superstep{};
  std::vector<double> instructions{};     // I_t(i), of the computation phase
  std::vector<double> compute_seconds{};  // CT_t(i), of the computation phase
  double communication_seconds = 0;       // communication phase and barrier of the superstep, for all
                                          // the same: see shared_phase_seconds() in adaptation.h
  SparseGrid recv_bytes{};                // B_t[i, j], received from ranks that are in Set j; unnamed: 0
  SparseGrid recv_seconds{};              // BT_t[i, j], transfer time without waiting for the sender; unnamed: 0
};

// --- Parameters ------------------------------------------------------------------------
struct Params {
  Heuristic heuristic = Heuristic::kAuto;
  std::uint64_t alpha0 = 10;  // α₀, supersteps, >= 1
  double d0 = 0.5;            // D₀, ratio, 0 < D₀ < 1
  std::uint64_t omega = 3;    // ω, calls without a migration after which D grows, >= 1
  double delta = 0.1;         // δ, tolerated error of the predicted instructions, ratio
  double beta = 0.1;          // β, tolerated error of the predicted bytes, ratio
  double x = 0.8;             // Percentage: candidates have PM >= x * MAX(PM), 0 < x <= 1
  Horizon horizon = Horizon::kWindow;
  std::uint64_t expected_supersteps = 0;  // of the whole job (Auto); 0 = unknown
  // The least relative gain worth a move, 0 <= min_gain < 1: of the plan's objective (AutoMig, Bottleneck, Auto) or of
  // each candidate's own time (the others).
  double min_gain = 0;
  std::uint64_t cooldown = 0;   // supersteps for which a moved rank stays where it is
  std::uint32_t max_moves = 0;  // moves per call; 0 = any number
  // All moves of a plan happen in one wave, in which targets are made before sources go. So a slot
  // that the plan itself vacates is not free for it, unless a simulated platform says otherwise.
  bool reuse_vacated_slots = false;
  bool early_calls = false;  // a call comes early when the job is not balanced any more (EarlyCall)
  // Supersteps of a new job's first window; from then on a window is no shorter than the job is old, up to α₀. 0: α₀.
  std::uint64_t first_alpha = 0;
  bool migrates = true;  // false (mode Advise): plans are not carried out, so γ counts every call
  // Instructions are CPU time, and no benchmark says what that is worth in each Set: one rank alone doesn't show a Set's speed.
  bool timed_work = false;
  ObjectiveType objective = ObjectiveType::kTime;  // Auto
  double max_slowdown = 0.1;  // kPrice: how much longer the job may take than in the shortest time, ratio
  bool operator==(const Params&) const = default;
};

// Names the first field that is out of its range.
Result<void> validate(const Params& params);

// --- What is carried from call to call -------------------------------------------------
// A wave, or several that followed each other soon, still to be judged by the supersteps after it (take_back.h).
struct Judged {
  double before = 0;  // s, mean superstep in the window before; 0: there is nothing to judge
  double error = 0;   // s, standard error of that
  double model = 0;   // s, what the model had for it
  // Its moves are those from `since` on, the superstep of the call that planned the first of them (0: the last wave's), and
  // before `until` (0: all), from where a part of them is taken back.
  Superstep since{}, until{};

  bool operator==(const Judged&) const = default;
};

// When the next call is; see adaptation.h.
struct Cadence {
  Superstep k{1};                // the superstep after the last call
  std::uint64_t alpha = 0;       // α of the window that starts at k; 0 = not begun: α₀
  std::uint64_t alpha_next = 0;  // α' so far
  double d = 0;                  // D of this window; 0 = not begun: D₀
  std::uint64_t gamma = 0;       // γ, consecutive calls without a migration
  double elapsed = 0;            // s, all supersteps so far, pauses not counted
  double owed = 0;               // s, pauses of Auto's waves so far less what the supersteps since then were shorter
  Judged wave{};                 // Auto's last wave, until what followed it has been seen
  std::uint64_t taken_back = 0;  // waves that Auto has undone
  bool cooling = false;          // this window follows one: it ends early only if the job was balanced in it

  bool operator==(const Cadence&) const = default;
};

// Everything a restarted operator needs to go on as if it had not been restarted (it then adds the
// supersteps since k again). An empty State is that of a new job. P_comp and P_comm may also be
// left empty, or have fewer Sets than the platform: what is missing starts at 1.
struct State {
  Cadence cadence{};
  std::vector<double> P_comp{};  // P_comp(i), 0..1
  SparseGrid P_comm{};           // P_comm[i, j], 0..1; unnamed: 1

  bool operator==(const State&) const = default;
};

}  // namespace bsp::decide
