// The fields of a record: name in JSON and member. Used by the .cc files of this
// directory.
//
// All fields are written, except rare ones: an object omits them if they have their default (so that older records, which
// lack them, can be read) or are an empty list, a list of rows if all rows have it. Most entries of a grid often equal the field's `usual`.
#pragma once

#include <string_view>

#include "base/core/fields.h"
#include "crds/reflect.h"
#include "operator/record/call.h"

namespace bsp::decide {

constexpr void fields_of(Of<Params>, auto&& v) {
  using P = Params;
  v("heuristic", &P::heuristic);
  v("alpha0", &P::alpha0);
  v("d0", &P::d0);
  v("omega", &P::omega);
  v("delta", &P::delta);
  v("beta", &P::beta);
  v("x", &P::x);
  v("horizon", &P::horizon);
  v("expectedSupersteps", &P::expected_supersteps, kRare);
  v("minGain", &P::min_gain);
  v("cooldown", &P::cooldown);
  v("maxMoves", &P::max_moves);
  v("reuseVacatedSlots", &P::reuse_vacated_slots);
  v("migrates", &P::migrates);
  v("earlyCalls", &P::early_calls, kRare);
  v("firstAlpha", &P::first_alpha, kRare);
  v("timedWork", &P::timed_work, kRare);
  v("objective", &P::objective, kRare);
  v("maxSlowdown", &P::max_slowdown, kRare);
}

constexpr void fields_of(Of<Set>, auto&& v) {
  v("name", &Set::name);
  v("cordoned", &Set::cordoned, kRare);
  v("untried", &Set::untried, kRare);
}

constexpr void fields_of(Of<Processor>, auto&& v) {
  using P = Processor;
  v("name", &P::name);
  v("set", &P::set);
  v("cpu", &P::cpu);
  v("cpuOrigin", &P::cpu_origin, kRare);
  v("load", &P::load, kRare);
  v("slots", &P::slots, kRare);
  v("taken", &P::taken, kRare);
  v("cordoned", &P::cordoned, kRare);
  v("cpuError", &P::cpu_error, kRare);
  v("mayReturn", &P::may_return, kRare);
  v("pod", &P::pod, kRare);
  v("price", &P::price, kRare);
}

constexpr void fields_of(Of<Price>, auto&& v) {
  v("byte", &Price::byte);
  v("message", &Price::message, kRare);
}

constexpr void fields_of(Of<Platform>, auto&& v) {
  using P = Platform;
  v("sets", &P::sets);
  v("processors", &P::processors);
  v("T", &P::T);
  v("TOrigin", &P::T_origin);
  v("Mig", &P::Mig);
  v("MigOrigin", &P::Mig_origin);
  v("capacity", &P::capacity, kRare);
  v("shared", &P::shared, kRare);
  v("apart", &P::apart, kRare);
}

constexpr void fields_of(Of<Partner>, auto&& v) {
  v("rank", &Partner::rank);
  v("bytes", &Partner::bytes);
  v("messages", &Partner::messages, kRare);
}

constexpr void fields_of(Of<Rank>, auto&& v) {
  using R = Rank;
  v("processor", &R::processor);
  v("memoryBytes", &R::memory_bytes);
  v("lastMove", &R::last_move, kRare);
  v("left", &R::left, kRare);
  v("notMigratable", &R::not_migratable, kRare);
  v("noMovesTo", &R::no_moves_to, kRare);
  v("cpuDiffers", &R::cpu_differs, kRare);
  v("cpuLacks", &R::cpu_lacks, kRare);
  v("partners", &R::partners, kRare);
  v("pod", &R::pod, kRare);
}

constexpr void fields_of(Of<Snapshot>, auto&& v) {
  v("platform", &Snapshot::platform);
  v("ranks", &Snapshot::ranks);
  v("timeLeft", &Snapshot::time_left, kRare);
}

constexpr void fields_of(Of<Judged>, auto&& v) {
  v("beforeSeconds", &Judged::before);
  v("errorSeconds", &Judged::error);
  v("modelSeconds", &Judged::model);
  v("since", &Judged::since, kRare);
  v("until", &Judged::until, kRare);
}

constexpr void fields_of(Of<Cadence>, auto&& v) {
  using C = Cadence;
  v("k", &C::k);
  v("alpha", &C::alpha);
  v("alphaNext", &C::alpha_next);
  v("d", &C::d);
  v("gamma", &C::gamma);
  v("elapsed", &C::elapsed, kRare);
  v("owed", &C::owed, kRare);
  v("wave", &C::wave, kRare);
  v("takenBack", &C::taken_back, kRare);
  v("cooling", &C::cooling, kRare);
}

constexpr void fields_of(Of<State>, auto&& v) {
  v("cadence", &State::cadence);
  v("pComp", &State::P_comp);
  v("pComm", &State::P_comm, Field{.usual = 1});
}

// An omitted field, except the first two, has the value of the superstep before.
constexpr void fields_of(Of<MeasuredSuperstep>, auto&& v) {
  using S = MeasuredSuperstep;
  v("superstep", &S::superstep);
  v("communicationSeconds", &S::communication_seconds);
  v("instructions", &S::instructions);
  v("computeSeconds", &S::compute_seconds);
  v("recvBytes", &S::recv_bytes);
  v("recvSeconds", &S::recv_seconds);
}

constexpr void fields_of(Of<PmEntry>, auto&& v) {
  using E = PmEntry;
  v("rank", &E::rank);
  v("target", &E::target);
  v("comp", &E::comp);
  v("comm", &E::comm, kRare);
  v("mem", &E::mem);
  v("pm", &E::pm);
}

constexpr void fields_of(Of<Level>, auto&& v) {
  using L = Level;
  v("level", &L::level);
  v("rank", &L::rank);
  v("time", &L::time);
  v("comm", &L::comm, kRare);
  v("mem", &L::mem);
  v("pf", &L::pf);
}

constexpr void fields_of(Of<Move>, auto&& v) {
  using M = Move;
  v("rank", &M::rank);
  v("from", &M::from);
  v("to", &M::to);
  v("fromSet", &M::from_set);
  v("toSet", &M::to_set);
  v("gainSuperstep", &M::gain_superstep);
  v("gainWindow", &M::gain_window);
  v("cost", &M::cost);
  v("tStay", &M::t_stay);
  v("tMove", &M::t_move);
  v("costAssumed", &M::cost_assumed);
  v("cpuAssumed", &M::cpu_assumed);
}

constexpr void fields_of(Of<Stay>, auto&& v) {
  using S = Stay;
  v("rank", &S::rank);
  v("reason", &S::reason);
  v("target", &S::target);
  v("value", &S::value, kRare);
  v("limit", &S::limit, kRare);
}

constexpr void fields_of(Of<Objective>, auto&& v) {
  v("name", &Objective::name);
  v("before", &Objective::before);
  v("after", &Objective::after);
}

constexpr void fields_of(Of<Forecast>, auto&& v) {
  v("before", &Forecast::before);
  v("after", &Forecast::after);
}

constexpr void fields_of(Of<Spending>, auto&& v) {
  v("before", &Spending::before);
  v("after", &Spending::after);
  v("limit", &Spending::limit, kRare);
}

constexpr void fields_of(Of<Rules>, auto&& v) {
  using R = Rules;
  v("supersteps", &R::supersteps);
  v("leastGain", &R::least_gain);
  v("unsteady", &R::unsteady, kRare);
  v("noise", &R::noise);
  v("owed", &R::owed);
  v("budget", &R::budget, kRare);
  v("waves", &R::waves, kRare);
  v("replayed", &R::replayed, kRare);
  v("takesBack", &R::takes_back, kRare);
  v("tries", &R::tries, kRare);
  v("explores", &R::explores, kRare);
}

constexpr void fields_of(Of<Plan>, auto&& v) {
  using P = Plan;
  v("heuristic", &P::heuristic);
  v("superstep", &P::superstep);
  v("pmList", &P::pm_list);
  v("levels", &P::levels);
  v("chosenLevel", &P::chosen_level);
  v("moves", &P::moves);
  v("stays", &P::stays);
  v("objective", &P::objective);
  v("forecast", &P::forecast);
  v("rules", &P::rules, kRare);
  v("spending", &P::spending, kRare);
  v("now", &P::now);
  v("next", &P::next);
}

}  // namespace bsp::decide

namespace bsp::record {

constexpr void fields_of(Of<Call>, auto&& v) {
  v("namespace", &Call::name_space);
  v("job", &Call::job);
  v("uid", &Call::uid);
  v("attempt", &Call::attempt);
  v("time", &Call::time);
  v("params", &Call::params);
  v("snapshot", &Call::snapshot);
  v("state", &Call::state);
  v("supersteps", &Call::supersteps);
  v("plan", &Call::plan);
}

// T of `T Struct::*`.
template <class M>
struct MemberOf;
template <class T, class Struct>
struct MemberOf<T Struct::*> {
  using type = T;
};
template <class M>
using Member = typename MemberOf<M>::type;

using reflect::kIsId;
using reflect::kIsVector;
using reflect::Path;
template <class T>
inline constexpr bool kIsGrid = false;
template <class T>
inline constexpr bool kIsGrid<decide::Grid<T>> = true;
template <>
inline constexpr bool kIsGrid<decide::SparseGrid> = true;

// The names of the heuristics' objectives. Objective::name is a view of a literal, so a reader makes it a view of one of
// these.
inline constexpr std::string_view kObjectives[] = {"pf", "time of the moved ranks", "time to the next call",
                                                   "time to the end", "cost to the end"};

}  // namespace bsp::record
