// Every field of the API, once: its JSON name and the member that holds it.
//
// Read by crds/reflect.h (JSON in and out) and by the test that compares this mirror with the YAML.
// v(name, member) is an optional field, v.required(name, member) one the user must give.
#pragma once

#include "crds/bspjob.h"
#include "crds/rankmigration.h"

namespace bsp::crds {

// One function per struct; T is the struct, const or not.
template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

template <Is<ObjectMeta> T, class V>
void visit_fields(T& o, V&& v) {
  v("name", o.name);
  v("namespace", o.name_space);
  v("uid", o.uid);
  v("resourceVersion", o.resource_version);
  v("generation", o.generation);
  v("labels", o.labels);
  v("annotations", o.annotations);
  v("finalizers", o.finalizers);
  v("ownerReferences", o.owner_references);
  v("creationTimestamp", o.creation_timestamp);
  v("deletionTimestamp", o.deletion_timestamp);
  // What an API server adds and nobody here needs.
  for (const char* name : {"managedFields", "generateName", "selfLink", "deletionGracePeriodSeconds"}) v.ignored(name);
}

template <Is<Condition> T, class V>
void visit_fields(T& o, V&& v) {
  v("type", o.type);
  v("status", o.status);
  v("observedGeneration", o.observed_generation);
  v("lastTransitionTime", o.last_transition_time);
  v("reason", o.reason);
  v("message", o.message);
}

template <Is<SetsSpec> T, class V>
void visit_fields(T& o, V&& v) {
  v("label", o.label);
  v("names", o.names);
}

template <Is<ReschedulingSpec> T, class V>
void visit_fields(T& o, V&& v) {
  v("mode", o.mode);
  v("heuristic", o.heuristic);
  v("alpha", o.alpha);
  v("d", o.d);
  v("omega", o.omega);
  v("delta", o.delta);
  v("beta", o.beta);
  v("x", o.x);
  v("horizon", o.horizon);
  v("minGain", o.min_gain);
  v("cooldownSupersteps", o.cooldown_supersteps);
  v("maxMovesPerWave", o.max_moves_per_wave);
}

template <Is<SuperstepSpec> T, class V>
void visit_fields(T& o, V&& v) {
  v("call", o.call);
  v("stride", o.stride);
}

template <Is<CheckpointSpec> T, class V>
void visit_fields(T& o, V&& v) {
  v("sizeLimit", o.size_limit);
}

template <Is<RunPolicy> T, class V>
void visit_fields(T& o, V&& v) {
  v("backoffLimit", o.backoff_limit);
  v("ttlSecondsAfterFinished", o.ttl_seconds_after_finished);
  v("activeDeadlineSeconds", o.active_deadline_seconds);
  v("cleanPodPolicy", o.clean_pod_policy);
  v("suspend", o.suspend);
  v("migrationHistoryLimit", o.migration_history_limit);
}

template <Is<BspJobSpec> T, class V>
void visit_fields(T& o, V&& v) {
  v.required("ranks", o.ranks);
  v.required("template", o.pod_template);
  v("sets", o.sets);
  v("initialMapping", o.initial_mapping);
  v("rescheduling", o.rescheduling);
  v("superstep", o.superstep);
  v("checkpoint", o.checkpoint);
  v("carryPaths", o.carry_paths);
  v("runPolicy", o.run_policy);
}

template <Is<RestartRecord> T, class V>
void visit_fields(T& o, V&& v) {
  v("attempt", o.attempt);
  v("time", o.time);
  v("reason", o.reason);
  v("message", o.message);
  v("rank", o.rank);
}

template <Is<SetRanks> T, class V>
void visit_fields(T& o, V&& v) {
  v("set", o.set);
  v("ranks", o.ranks);
  v("slots", o.slots);
}

template <Is<RankPlace> T, class V>
void visit_fields(T& o, V&& v) {
  v("rank", o.rank);
  v("set", o.set);
  v("node", o.node);
  v("pod", o.pod);
  v("generation", o.generation);
  v("timeSeconds", o.time_seconds);
  v("computeSeconds", o.compute_seconds);
  v("memoryBytes", o.memory_bytes);
  v("blockedReason", o.blocked_reason);
}

template <Is<PotentialEntry> T, class V>
void visit_fields(T& o, V&& v) {
  v("rank", o.rank);
  v("targetSet", o.target_set);
  v("comp", o.comp);
  v("comm", o.comm);
  v("mem", o.mem);
  v("pm", o.pm);
}

template <Is<LevelEntry> T, class V>
void visit_fields(T& o, V&& v) {
  v("level", o.level);
  v("pf", o.pf);
}

template <Is<MoveEntry> T, class V>
void visit_fields(T& o, V&& v) {
  v("rank", o.rank);
  v("fromSet", o.from_set);
  v("toSet", o.to_set);
  v("toNode", o.to_node);
  v("predictedGainSeconds", o.predicted_gain_seconds);
}

template <Is<StayEntry> T, class V>
void visit_fields(T& o, V&& v) {
  v("rank", o.rank);
  v("reason", o.reason);
  v("message", o.message);
}

template <Is<Decision> T, class V>
void visit_fields(T& o, V&& v) {
  v("superstep", o.superstep);
  v("time", o.time);
  v("alpha", o.alpha);
  v("alphaNext", o.alpha_next);
  v("d", o.d);
  v("dNext", o.d_next);
  v("imbalance", o.imbalance);
  v("potentials", o.potentials);
  v("levels", o.levels);
  v("chosenLevel", o.chosen_level);
  v("objectiveBefore", o.objective_before);
  v("objectiveAfter", o.objective_after);
  v("moves", o.moves);
  v("stays", o.stays);
  v("outcome", o.outcome);
  v("message", o.message);
}

template <Is<CalibrationFigure> T, class V>
void visit_fields(T& o, V&& v) {
  v("name", o.name);
  v("set", o.set);
  v("toSet", o.to_set);
  v("value", o.value);
  v("unit", o.unit);
  v("source", o.source);
  v("samples", o.samples);
}

template <Is<MigrationCounters> T, class V>
void visit_fields(T& o, V&& v) {
  v("waves", o.waves);
  v("active", o.active);
  v("succeeded", o.succeeded);
  v("rolledBack", o.rolled_back);
  v("failed", o.failed);
}

template <Is<BspJobStatus> T, class V>
void visit_fields(T& o, V&& v) {
  v("observedGeneration", o.observed_generation);
  v("phase", o.phase);
  v("reason", o.reason);
  v("message", o.message);
  v("conditions", o.conditions);
  v("startTime", o.start_time);
  v("completionTime", o.completion_time);
  v("attempt", o.attempt);
  v("restarts", o.restarts);
  v("superstep", o.superstep);
  v("alpha", o.alpha);
  v("d", o.d);
  v("imbalance", o.imbalance);
  v("epoch", o.epoch);
  v("epochsUsed", o.epochs_used);
  v("wave", o.wave);
  v("ranksPerSet", o.ranks_per_set);
  v("ranks", o.ranks);
  v("lastDecision", o.last_decision);
  v("calibration", o.calibration);
  v("migrations", o.migrations);
  v("predictedGainSeconds", o.predicted_gain_seconds);
  v("realisedGainSeconds", o.realised_gain_seconds);
  v("waveState", o.wave_state);
  v("rescheduler", o.rescheduler);
}

template <Is<RankMigrationSpec> T, class V>
void visit_fields(T& o, V&& v) {
  v.required("job", o.job);
  v.required("rank", o.rank);
  v("targetSet", o.target_set);
  v("targetNode", o.target_node);
  v("wave", o.wave);
  v("predictedGainSeconds", o.predicted_gain_seconds);
}

template <Is<PhaseTime> T, class V>
void visit_fields(T& o, V&& v) {
  v("phase", o.phase);
  v("time", o.time);
}

template <Is<PauseParts> T, class V>
void visit_fields(T& o, V&& v) {
  v("totalMs", o.total_ms);
  v("gateMs", o.gate_ms);
  v("closeMs", o.close_ms);
  v("dumpMs", o.dump_ms);
  v("transferMs", o.transfer_ms);
  v("restoreMs", o.restore_ms);
  v("commitMs", o.commit_ms);
  v("openMs", o.open_ms);
}

template <Is<RankMigrationStatus> T, class V>
void visit_fields(T& o, V&& v) {
  v("observedGeneration", o.observed_generation);
  v("phase", o.phase);
  v("reason", o.reason);
  v("message", o.message);
  v("conditions", o.conditions);
  v("phaseTimes", o.phase_times);
  v("startTime", o.start_time);
  v("completionTime", o.completion_time);
  v("wave", o.wave);
  v("superstep", o.superstep);
  v("fromEpoch", o.from_epoch);
  v("toEpoch", o.to_epoch);
  v("sourceSet", o.source_set);
  v("sourceNode", o.source_node);
  v("sourcePod", o.source_pod);
  v("targetSet", o.target_set);
  v("targetNode", o.target_node);
  v("targetPod", o.target_pod);
  v("bytes", o.bytes);
  v("pause", o.pause);
  v("predictedGainSeconds", o.predicted_gain_seconds);
  v("realisedGainSeconds", o.realised_gain_seconds);
}

}  // namespace bsp::crds
