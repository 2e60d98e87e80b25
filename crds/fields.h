// Every field of the API, once: its JSON name and the member that holds it.
//
// Read by crds/reflect.h (JSON in and out) and by the test that compares this mirror with the YAML.
#pragma once

#include "crds/bspjob.h"
#include "crds/rankmigration.h"

namespace bsp::crds {

constexpr void fields_of(Of<ObjectMeta>, auto&& v) {
  v("name", &ObjectMeta::name);
  v("namespace", &ObjectMeta::name_space);
  v("uid", &ObjectMeta::uid);
  v("resourceVersion", &ObjectMeta::resource_version);
  v("generation", &ObjectMeta::generation);
  v("labels", &ObjectMeta::labels);
  v("annotations", &ObjectMeta::annotations);
  v("finalizers", &ObjectMeta::finalizers);
  v("ownerReferences", &ObjectMeta::owner_references);
  v("creationTimestamp", &ObjectMeta::creation_timestamp);
  v("deletionTimestamp", &ObjectMeta::deletion_timestamp);
  // What an API server adds and this program does not need.
  for (const char* name : {"managedFields", "generateName", "selfLink", "deletionGracePeriodSeconds"}) v.ignored(name);
}

constexpr void fields_of(Of<Condition>, auto&& v) {
  v("type", &Condition::type);
  v("status", &Condition::status);
  v("observedGeneration", &Condition::observed_generation);
  v("lastTransitionTime", &Condition::last_transition_time);
  v("reason", &Condition::reason);
  v("message", &Condition::message);
}

constexpr void fields_of(Of<SetsSpec>, auto&& v) {
  v("label", &SetsSpec::label);
  v("names", &SetsSpec::names);
}

constexpr void fields_of(Of<ReschedulingSpec>, auto&& v) {
  v("mode", &ReschedulingSpec::mode);
  v("heuristic", &ReschedulingSpec::heuristic);
  v("alpha", &ReschedulingSpec::alpha);
  v("d", &ReschedulingSpec::d);
  v("omega", &ReschedulingSpec::omega);
  v("delta", &ReschedulingSpec::delta);
  v("beta", &ReschedulingSpec::beta);
  v("x", &ReschedulingSpec::x);
  v("horizon", &ReschedulingSpec::horizon);
  v("expectedSupersteps", &ReschedulingSpec::expected_supersteps);
  v("minGain", &ReschedulingSpec::min_gain);
  v("cooldownSupersteps", &ReschedulingSpec::cooldown_supersteps);
  v("maxMovesPerWave", &ReschedulingSpec::max_moves_per_wave);
  v("resize", &ReschedulingSpec::resize);
}

constexpr void fields_of(Of<ObjectiveSpec>, auto&& v) {
  v("type", &ObjectiveSpec::type);
  v("deadline", &ObjectiveSpec::deadline);
  v("maxSlowdown", &ObjectiveSpec::max_slowdown);
}

constexpr void fields_of(Of<SuperstepSpec>, auto&& v) {
  v("call", &SuperstepSpec::call);
  v("stride", &SuperstepSpec::stride);
}

constexpr void fields_of(Of<ClaimSource>, auto&& v) { v("claimName", &ClaimSource::claim_name, kRequired); }
constexpr void fields_of(Of<HostPathSource>, auto&& v) { v("path", &HostPathSource::path, kRequired); }
constexpr void fields_of(Of<S3Source>, auto&& v) {
  v("endpoint", &S3Source::endpoint, kRequired);
  v("bucket", &S3Source::bucket, kRequired);
  v("prefix", &S3Source::prefix);
  v("region", &S3Source::region);
  v("credentialsSecret", &S3Source::credentials_secret, kRequired);
  v("caSecret", &S3Source::ca_secret);
}
constexpr void fields_of(Of<CheckpointStorage>, auto&& v) {
  v("persistentVolumeClaim", &CheckpointStorage::persistent_volume_claim);
  v("hostPath", &CheckpointStorage::host_path);
  v("s3", &CheckpointStorage::s3);
}
constexpr void fields_of(Of<CheckpointSpec>, auto&& v) {
  v("sizeLimit", &CheckpointSpec::size_limit);
  v("interval", &CheckpointSpec::interval);
  v("keep", &CheckpointSpec::keep);
  v("grace", &CheckpointSpec::grace);
  v("sharedFiles", &CheckpointSpec::shared_files);
  v("reclaimPolicy", &CheckpointSpec::reclaim_policy);
  v("allowedNamespaces", &CheckpointSpec::allowed_namespaces, Field{.most = CheckpointSpec::kMostAllowedNamespaces});
  v("storage", &CheckpointSpec::storage);
}
constexpr void fields_of(Of<SidecarSpec>, auto&& v) { v("resources", &SidecarSpec::resources); }

constexpr void fields_of(Of<SchedulingSpec>, auto&& v) { v("gang", &SchedulingSpec::gang); }

constexpr void fields_of(Of<RestoreFrom>, auto&& v) {
  v("job", &RestoreFrom::job);
  v("namespace", &RestoreFrom::name_space);
  v("set", &RestoreFrom::set);
  v("exported", &RestoreFrom::exported);
  v("keySecret", &RestoreFrom::key_secret);
}

constexpr void fields_of(Of<RunPolicy>, auto&& v) {
  v("backoffLimit", &RunPolicy::backoff_limit);
  v("ttlSecondsAfterFinished", &RunPolicy::ttl_seconds_after_finished);
  v("activeDeadlineSeconds", &RunPolicy::active_deadline_seconds);
  v("cleanPodPolicy", &RunPolicy::clean_pod_policy);
  v("suspend", &RunPolicy::suspend);
  v("priority", &RunPolicy::priority);
  v("drainTimeoutSeconds", &RunPolicy::drain_timeout_seconds);
  v("migrationHistoryLimit", &RunPolicy::migration_history_limit);
}

constexpr void fields_of(Of<BspJobSpec>, auto&& v) {
  v("ranks", &BspJobSpec::ranks, Field{.required = true, .most = kMostPacked});
  v("ranksPerPod", &BspJobSpec::ranks_per_pod);
  v("template", &BspJobSpec::pod_template, kRequired);
  v("sets", &BspJobSpec::sets);
  v("initialMapping", &BspJobSpec::initial_mapping);
  v("cpu", &BspJobSpec::cpu);
  v("rescheduling", &BspJobSpec::rescheduling);
  v("objective", &BspJobSpec::objective);
  v("superstep", &BspJobSpec::superstep);
  v("checkpoint", &BspJobSpec::checkpoint);
  v("sidecar", &BspJobSpec::sidecar);
  v("carryPaths", &BspJobSpec::carry_paths);
  v("runPolicy", &BspJobSpec::run_policy);
  v("scheduling", &BspJobSpec::scheduling);
  v("restoreFrom", &BspJobSpec::restore_from);
}

constexpr void fields_of(Of<RestartRecord>, auto&& v) {
  v("attempt", &RestartRecord::attempt);
  v("time", &RestartRecord::time);
  v("reason", &RestartRecord::reason);
  v("message", &RestartRecord::message);
  v("rank", &RestartRecord::rank);
}

constexpr void fields_of(Of<StoredSet>, auto&& v) {
  v("id", &StoredSet::id);
  v("superstep", &StoredSet::superstep);
  v("epoch", &StoredSet::epoch);
  v("attempt", &StoredSet::attempt);
  v("time", &StoredSet::time);
  v("pauseSeconds", &StoredSet::pause_seconds);
  v("bytes", &StoredSet::bytes);
  v("storedBytes", &StoredSet::stored);
  v("base", &StoredSet::base);
  v("image", &StoredSet::image);
  v("digests", &StoredSet::digests);
  v("runtime", &StoredSet::runtime);
  v("account", &StoredSet::account);
  v("mounts", &StoredSet::mounts);
  v("features", &StoredSet::features);
  v("unusable", &StoredSet::unusable);
  v("tries", &StoredSet::tries);
  v("suspected", &StoredSet::suspected);
  v("suspectedOn", &StoredSet::suspected_on);
  v("ofJob", &StoredSet::of_job);
  v("grant", &StoredSet::grant);
}

constexpr void fields_of(Of<PendingSet>, auto&& v) {
  v("id", &PendingSet::id);
  v("superstep", &PendingSet::superstep);
  v("epoch", &PendingSet::epoch);
  v("attempt", &PendingSet::attempt);
  v("time", &PendingSet::time);
  v("pauseSeconds", &PendingSet::pause_seconds);
}

constexpr void fields_of(Of<CheckpointStatus>, auto&& v) {
  v("superstep", &CheckpointStatus::superstep);
  v("time", &CheckpointStatus::time);
  v("message", &CheckpointStatus::message);
  v("sets", &CheckpointStatus::sets);
  v("pending", &CheckpointStatus::pending);
  v("idsUsed", &CheckpointStatus::ids_used);
  v("restored", &CheckpointStatus::restored);
  v("withoutProgress", &CheckpointStatus::without_progress);
  v("losses", &CheckpointStatus::losses);
  v("suspending", &CheckpointStatus::suspending);
  v("asked", &CheckpointStatus::asked);
  v("marked", &CheckpointStatus::marked);
}

constexpr void fields_of(Of<SetRanks>, auto&& v) {
  v("set", &SetRanks::set);
  v("ranks", &SetRanks::ranks);
  v("slots", &SetRanks::slots);
}

constexpr void fields_of(Of<PotentialEntry>, auto&& v) {
  v("rank", &PotentialEntry::rank);
  v("targetSet", &PotentialEntry::target_set);
  v("comp", &PotentialEntry::comp);
  v("comm", &PotentialEntry::comm);
  v("mem", &PotentialEntry::mem);
  v("pm", &PotentialEntry::pm);
}

constexpr void fields_of(Of<LevelEntry>, auto&& v) {
  v("level", &LevelEntry::level);
  v("pf", &LevelEntry::pf);
}

constexpr void fields_of(Of<MoveEntry>, auto&& v) {
  v("rank", &MoveEntry::rank);
  v("fromSet", &MoveEntry::from_set);
  v("toSet", &MoveEntry::to_set);
  v("toNode", &MoveEntry::to_node);
  v("predictedGainSeconds", &MoveEntry::predicted_gain_seconds);
}

constexpr void fields_of(Of<ResizeEntry>, auto&& v) {
  v("rank", &ResizeEntry::rank);
  v("node", &ResizeEntry::node);
  v("fromMillicores", &ResizeEntry::from_milli);
  v("toMillicores", &ResizeEntry::to_milli);
  v("superstepBefore", &ResizeEntry::superstep_before);
  v("superstepAfter", &ResizeEntry::superstep_after);
  v("moveSeconds", &ResizeEntry::move_seconds);
  v("moveTo", &ResizeEntry::move_to);
}

constexpr void fields_of(Of<StayEntry>, auto&& v) {
  v("rank", &StayEntry::rank);
  v("reason", &StayEntry::reason);
  v("message", &StayEntry::message);
}

constexpr void fields_of(Of<StayCount>, auto&& v) {
  v("reason", &StayCount::reason);
  v("ranks", &StayCount::ranks);
}

constexpr void fields_of(Of<Decision>, auto&& v) {
  v("superstep", &Decision::superstep);
  v("time", &Decision::time);
  v("alpha", &Decision::alpha);
  v("alphaNext", &Decision::alpha_next);
  v("d", &Decision::d);
  v("dNext", &Decision::d_next);
  v("imbalance", &Decision::imbalance);
  v("potentials", &Decision::potentials);
  v("levels", &Decision::levels);
  v("chosenLevel", &Decision::chosen_level);
  v("objectiveBefore", &Decision::objective_before);
  v("objectiveAfter", &Decision::objective_after);
  v("plannedMoves", &Decision::planned_moves);
  v("moves", &Decision::moves);
  v("resizes", &Decision::resizes);
  v("staysByReason", &Decision::stays_by_reason);
  v("stays", &Decision::stays);
  v("outcome", &Decision::outcome);
  v("message", &Decision::message);
}

constexpr void fields_of(Of<CalibrationEntry>, auto&& v) {
  v("name", &CalibrationEntry::name);
  v("set", &CalibrationEntry::set);
  v("toSet", &CalibrationEntry::to_set);
  v("value", &CalibrationEntry::value);
  v("unit", &CalibrationEntry::unit);
  v("source", &CalibrationEntry::source);
  v("samples", &CalibrationEntry::samples);
}

constexpr void fields_of(Of<MigrationCounters>, auto&& v) {
  v("waves", &MigrationCounters::waves);
  v("active", &MigrationCounters::active);
  v("succeeded", &MigrationCounters::succeeded);
  v("rolledBack", &MigrationCounters::rolled_back);
  v("failed", &MigrationCounters::failed);
  v("resized", &MigrationCounters::resized);
}

constexpr void fields_of(Of<RankResize>, auto&& v) {
  v("rank", &RankResize::rank);
  v("pod", &RankResize::pod);
  v("node", &RankResize::node);
  v("fromMillicores", &RankResize::from_milli);
  v("toMillicores", &RankResize::to_milli);
  v("phase", &RankResize::phase);
  v("time", &RankResize::time);
  v("message", &RankResize::message);
}

constexpr void fields_of(Of<SuperstepEdge>, auto&& v) {
  v("call", &SuperstepEdge::call);
  v("stride", &SuperstepEdge::stride);
  v("chosenAfter", &SuperstepEdge::chosen_after);
}

constexpr void fields_of(Of<VanishedPod>, auto&& v) {
  v("pod", &VanishedPod::pod, kRequired);
  v("uid", &VanishedPod::uid, kRequired);
  v("node", &VanishedPod::node, kRequired);
  v("graceSeconds", &VanishedPod::grace_seconds);
}

constexpr void fields_of(Of<BspJobStatus>, auto&& v) {
  v("observedGeneration", &BspJobStatus::observed_generation);
  v("phase", &BspJobStatus::phase);
  v("reason", &BspJobStatus::reason);
  v("message", &BspJobStatus::message);
  v("conditions", &BspJobStatus::conditions);
  v("startTime", &BspJobStatus::start_time);
  v("completionTime", &BspJobStatus::completion_time);
  v("attempt", &BspJobStatus::attempt);
  v("restarts", &BspJobStatus::restarts);
  v("superstep", &BspJobStatus::superstep);
  v("superstepEdge", &BspJobStatus::superstep_edge);
  v("alpha", &BspJobStatus::alpha);
  v("d", &BspJobStatus::d);
  v("imbalance", &BspJobStatus::imbalance);
  v("epoch", &BspJobStatus::epoch);
  v("epochsUsed", &BspJobStatus::epochs_used);
  v("runtimeImage", &BspJobStatus::runtime_image);
  v("wave", &BspJobStatus::wave);
  v("setLabel", &BspJobStatus::set_label);
  v("sharesPods", &BspJobStatus::shares_pods);
  v("ranksPerSet", &BspJobStatus::ranks_per_set);
  v("ranks", &BspJobStatus::ranks);
  v("lastDecision", &BspJobStatus::last_decision);
  v("calibration", &BspJobStatus::calibration);
  v("migrations", &BspJobStatus::migrations);
  v("resizes", &BspJobStatus::resizes, Field{.most = kMostResizes});
  v("predictedGainSeconds", &BspJobStatus::predicted_gain_seconds);
  v("realisedGainSeconds", &BspJobStatus::realised_gain_seconds);
  v("realisedGainErrorSeconds", &BspJobStatus::realised_gain_error_seconds);
  v("pauseSeconds", &BspJobStatus::pause_seconds);
  v("vanished", &BspJobStatus::vanished, Field{.most = kMostVanished});
  v("checkpoint", &BspJobStatus::checkpoint);
  v("waveState", &BspJobStatus::wave_state);
  v("rescheduler", &BspJobStatus::rescheduler);
}

constexpr void fields_of(Of<RankMigrationSpec>, auto&& v) {
  v("job", &RankMigrationSpec::job, kRequired);
  v("rank", &RankMigrationSpec::rank, kRequired);
  v("targetSet", &RankMigrationSpec::target_set);
  v("targetNode", &RankMigrationSpec::target_node);
  v("wave", &RankMigrationSpec::wave);
  v("predictedGainSeconds", &RankMigrationSpec::predicted_gain_seconds);
}

constexpr void fields_of(Of<PhaseTime>, auto&& v) {
  v("phase", &PhaseTime::phase);
  v("time", &PhaseTime::time);
}

constexpr void fields_of(Of<PauseParts>, auto&& v) {
  v("totalMs", &PauseParts::total_ms);
  v("gateMs", &PauseParts::gate_ms);
  v("closeMs", &PauseParts::close_ms);
  v("dumpMs", &PauseParts::dump_ms);
  v("transferMs", &PauseParts::transfer_ms);
  v("restoreMs", &PauseParts::restore_ms);
  v("commitMs", &PauseParts::commit_ms);
  v("openMs", &PauseParts::open_ms);
}

constexpr void fields_of(Of<RankMigrationStatus>, auto&& v) {
  v("observedGeneration", &RankMigrationStatus::observed_generation);
  v("phase", &RankMigrationStatus::phase);
  v("reason", &RankMigrationStatus::reason);
  v("message", &RankMigrationStatus::message);
  v("conditions", &RankMigrationStatus::conditions);
  v("phaseTimes", &RankMigrationStatus::phase_times);
  v("startTime", &RankMigrationStatus::start_time);
  v("completionTime", &RankMigrationStatus::completion_time);
  v("wave", &RankMigrationStatus::wave);
  v("superstep", &RankMigrationStatus::superstep);
  v("fromEpoch", &RankMigrationStatus::from_epoch);
  v("toEpoch", &RankMigrationStatus::to_epoch);
  v("sourceSet", &RankMigrationStatus::source_set);
  v("sourceNode", &RankMigrationStatus::source_node);
  v("sourcePod", &RankMigrationStatus::source_pod);
  v("targetSet", &RankMigrationStatus::target_set);
  v("targetNode", &RankMigrationStatus::target_node);
  v("targetPod", &RankMigrationStatus::target_pod);
  v("bytes", &RankMigrationStatus::bytes);
  v("pause", &RankMigrationStatus::pause);
  v("predictedGainSeconds", &RankMigrationStatus::predicted_gain_seconds);
  v("realisedGainSeconds", &RankMigrationStatus::realised_gain_seconds);
  v("realisedGainErrorSeconds", &RankMigrationStatus::realised_gain_error_seconds);
  v("gain", &RankMigrationStatus::gain);
}

}  // namespace bsp::crds
