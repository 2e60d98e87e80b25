// Every field of a record, once: its name in JSON and the member that holds it. Used by the .cc files of this
// directory.
//
// v(name, member) is a field that is always there; v.rare(name, member) one that a list of rows leaves out where all
// rows have the default; v.grid(name, member, usual) a grid of which most entries are often `usual`.
#pragma once

#include <concepts>
#include <type_traits>

#include "operator/record/call.h"

namespace bsp::record {

template <class T>
using Of = std::type_identity<T>;

template <class V>
void visit_fields(Of<decide::Params>, V&& v) {
  using P = decide::Params;
  v("heuristic", &P::heuristic);
  v("alpha0", &P::alpha0);
  v("d0", &P::d0);
  v("omega", &P::omega);
  v("delta", &P::delta);
  v("beta", &P::beta);
  v("x", &P::x);
  v("horizon", &P::horizon);
  v("minGain", &P::min_gain);
  v("cooldown", &P::cooldown);
  v("maxMoves", &P::max_moves);
  v("reuseVacatedSlots", &P::reuse_vacated_slots);
  v("migrates", &P::migrates);
}

template <class V>
void visit_fields(Of<decide::Set>, V&& v) {
  v("name", &decide::Set::name);
  v.rare("cordoned", &decide::Set::cordoned);
}

template <class V>
void visit_fields(Of<decide::Processor>, V&& v) {
  using P = decide::Processor;
  v("name", &P::name);
  v("set", &P::set);
  v("cpu", &P::cpu);
  v.rare("cpuOrigin", &P::cpu_origin);
  v.rare("load", &P::load);
  v.rare("slots", &P::slots);
  v.rare("taken", &P::taken);
  v.rare("cordoned", &P::cordoned);
}

template <class V>
void visit_fields(Of<decide::Platform>, V&& v) {
  using P = decide::Platform;
  v("sets", &P::sets);
  v("processors", &P::processors);
  v.grid("T", &P::T, 0.0);
  v.grid("TOrigin", &P::T_origin, decide::Origin::kAssumed);
  v.grid("Mig", &P::Mig, 0.0);
  v.grid("MigOrigin", &P::Mig_origin, decide::Origin::kAssumed);
}

template <class V>
void visit_fields(Of<decide::Rank>, V&& v) {
  using R = decide::Rank;
  v("processor", &R::processor);
  v("memoryBytes", &R::memory_bytes);
  v.rare("lastMove", &R::last_move);
  v.rare("notMigratable", &R::not_migratable);
  v.rare("lacksCpuFeaturesOn", &R::lacks_cpu_features_on);
}

template <class V>
void visit_fields(Of<decide::Snapshot>, V&& v) {
  v("platform", &decide::Snapshot::platform);
  v("ranks", &decide::Snapshot::ranks);
}

template <class V>
void visit_fields(Of<decide::Cadence>, V&& v) {
  using C = decide::Cadence;
  v("k", &C::k);
  v("alpha", &C::alpha);
  v("alphaNext", &C::alpha_next);
  v("d", &C::d);
  v("gamma", &C::gamma);
}

template <class V>
void visit_fields(Of<decide::State>, V&& v) {
  v("cadence", &decide::State::cadence);
  v("pComp", &decide::State::P_comp);
  v.grid("pComm", &decide::State::P_comm, 1.0);
}

// One that leaves a field out has that of the superstep before, but for the first two.
template <class V>
void visit_fields(Of<decide::MeasuredSuperstep>, V&& v) {
  using S = decide::MeasuredSuperstep;
  v("superstep", &S::superstep);
  v("communicationSeconds", &S::communication_seconds);
  v("instructions", &S::instructions);
  v("computeSeconds", &S::compute_seconds);
  v.grid("recvBytes", &S::recv_bytes, 0.0);
  v.grid("recvSeconds", &S::recv_seconds, 0.0);
}

template <class V>
void visit_fields(Of<decide::PmEntry>, V&& v) {
  using E = decide::PmEntry;
  v("rank", &E::rank);
  v("target", &E::target);
  v("comp", &E::comp);
  v.rare("comm", &E::comm);
  v("mem", &E::mem);
  v("pm", &E::pm);
}

template <class V>
void visit_fields(Of<decide::Level>, V&& v) {
  using L = decide::Level;
  v("level", &L::level);
  v("rank", &L::rank);
  v("time", &L::time);
  v.rare("comm", &L::comm);
  v("mem", &L::mem);
  v("pf", &L::pf);
}

template <class V>
void visit_fields(Of<decide::Move>, V&& v) {
  using M = decide::Move;
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

template <class V>
void visit_fields(Of<decide::Stay>, V&& v) {
  using S = decide::Stay;
  v("rank", &S::rank);
  v("reason", &S::reason);
  v("target", &S::target);
  v.rare("value", &S::value);
  v.rare("limit", &S::limit);
}

template <class V>
void visit_fields(Of<decide::Objective>, V&& v) {
  v("name", &decide::Objective::name);
  v("before", &decide::Objective::before);
  v("after", &decide::Objective::after);
}

template <class V>
void visit_fields(Of<decide::Forecast>, V&& v) {
  v("before", &decide::Forecast::before);
  v("after", &decide::Forecast::after);
}

template <class V>
void visit_fields(Of<decide::Plan>, V&& v) {
  using P = decide::Plan;
  v("heuristic", &P::heuristic);
  v("superstep", &P::superstep);
  v("pmList", &P::pm_list);
  v("levels", &P::levels);
  v("chosenLevel", &P::chosen_level);
  v("moves", &P::moves);
  v("stays", &P::stays);
  v("objective", &P::objective);
  v("forecast", &P::forecast);
  v("now", &P::now);
  v("next", &P::next);
}

template <class V>
void visit_fields(Of<Call>, V&& v) {
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

// What has fields: an object in JSON, and in a vector a row of columns.
struct AnyVisitor {
  template <class M>
  void operator()(const char*, M) {}
  template <class M>
  void rare(const char*, M) {}
  template <class M, class U>
  void grid(const char*, M, U) {}
};
template <class T>
concept HasFields = requires(AnyVisitor v) { visit_fields(Of<T>{}, v); };

// T of `T Struct::*`.
template <class M>
struct MemberOf;
template <class T, class Struct>
struct MemberOf<T Struct::*> {
  using type = T;
};
template <class M>
using Member = typename MemberOf<M>::type;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsGrid = false;
template <class T>
inline constexpr bool kIsGrid<decide::Grid<T>> = true;
template <>
inline constexpr bool kIsGrid<decide::SparseGrid> = true;
template <class T>
inline constexpr bool kIsId = false;
template <class Tag, class Value>
inline constexpr bool kIsId<Id<Tag, Value>> = true;

// Names of enumerators, in their order.
inline constexpr const char* kHorizons[] = {"Window", "Superstep"};
// What decide's heuristics call that which they lower: Objective::name is a view of a literal, and so of these when
// read.
inline constexpr std::string_view kObjectives[] = {"pf", "time of the moved ranks", "time to the next call"};

}  // namespace bsp::record
