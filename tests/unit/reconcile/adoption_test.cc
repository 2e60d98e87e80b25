// spec.restoreFrom: a job begins with another job's checkpoint set, and nobody with a set of another namespace.
#include "operator/reconcile/kernel/checkpoints/adoption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/core/base64.h"
#include "base/net/pki.h"
#include "crds/requests.h"
#include "crds/sets/exported_set.h"
#include "crds/sets/set_keys.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/checkpoints/resumption.h"
#include "operator/reconcile/shell/job/set_remover.h"
#include "operator/reconcile/shell/job/source_job.h"
#include "operator/reconcile/shell/orphans.h"

namespace bsp::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

crds::StoredSet set_of_ranks(std::uint64_t id, std::size_t ranks, const std::string& unusable = "") {
  crds::StoredSet set;
  set.id = id;
  set.superstep = {10 * id};
  set.epoch = 3 * id;
  set.digests = base64_encode(std::string(32 * ranks, 'd'));
  set.unusable = unusable;
  if (!unusable.empty()) set.tries = 2, set.suspected = "criu can't", set.suspected_on = "node";
  return set;
}

Observed job_that_wants(std::optional<std::uint64_t> set = std::nullopt) {
  Observed o;
  o.job.spec.ranks = 2;
  o.job.spec.restore_from = crds::RestoreFrom{.job = "lbm", .set = set};
  o.source.emplace();
  o.source->uid = "u-1";
  o.source->epochs_used = 40;
  o.source->grant = "granted";
  o.source->sets = {set_of_ranks(4, 2), set_of_ranks(5, 2), set_of_ranks(6, 2, "damaged")};
  return o;
}

TEST(Adoption, TakesTheNewestThatIsUsable) {
  const Observed o = job_that_wants();
  crds::BspJobStatus status;
  const Adoption adoption = adopt_set(o, status);
  EXPECT_EQ(adoption.trouble, "");
  ASSERT_THAT(status.checkpoint->sets, SizeIs(1));
  const crds::StoredSet& set = status.checkpoint->sets[0];
  EXPECT_EQ(set.id, 5u);
  EXPECT_EQ(set.of_job, "u-1");
  EXPECT_EQ(set.grant, "granted");
  EXPECT_EQ(status.checkpoint->ids_used, 5u) << "its own sets get other numbers";
  EXPECT_EQ(status.checkpoint->superstep.value, 50u);
  EXPECT_GE(status.epochs_used, 40u) << "no epoch that the ranks have seen comes again";
  choose_set(status);
  ASSERT_NE(set_of_start(status), nullptr);
  EXPECT_TRUE(is_last_adopted(*set_of_start(status), status));
  // Once, whatever becomes of the other job.
  Observed gone = o;
  gone.source->trouble = "there is no job lbm";
  EXPECT_EQ(adopt_set(gone, status).trouble, "");
  EXPECT_THAT(status.checkpoint->sets, SizeIs(1));
}

TEST(Adoption, TakesTheOneThatIsNamed) {
  crds::BspJobStatus status;
  EXPECT_EQ(adopt_set(job_that_wants(6), status).trouble, "");
  EXPECT_EQ(status.checkpoint->sets[0].id, 6u);
  EXPECT_EQ(status.checkpoint->sets[0].unusable, "") << "for this job it is untried";
  EXPECT_EQ(status.checkpoint->sets[0].suspected + status.checkpoint->sets[0].suspected_on, "");
  EXPECT_EQ(status.checkpoint->sets[0].tries, 0u);
}

TEST(Adoption, KeepsTheGrantOfAJobBeforeThat) {
  Observed o = job_that_wants();
  o.source->sets = {set_of_ranks(7, 2)};
  o.source->sets[0].of_job = "u-0";
  o.source->sets[0].grant = "of u-0";
  crds::BspJobStatus status;
  EXPECT_EQ(adopt_set(o, status).trouble, "");
  EXPECT_EQ(status.checkpoint->sets[0].of_job, "u-0");
  EXPECT_EQ(status.checkpoint->sets[0].grant, "of u-0");
}

TEST(Adoption, WaitsForTheJobAndFailsWithoutASet) {
  struct Case {
    std::string trouble;
    bool waits;
    std::function<void(Observed&)> change;
  };
  const Case cases[] = {
      {"job lbm is not known yet", true, [](Observed& o) { o.source.reset(); }},
      {"there is no job lbm", true, [](Observed& o) { o.source->trouble = "there is no job lbm"; }},
      {"spec.restoreFrom: job lbm has no checkpoint set", false, [](Observed& o) { o.source->sets.clear(); }},
      {"spec.restoreFrom.set: job lbm has no checkpoint set 9; it has 4, 5, 6", false,
       [](Observed& o) { o.job.spec.restore_from->set = 9; }},
      {"no checkpoint set of job lbm can be used", false,
       [](Observed& o) { o.source->sets = {set_of_ranks(4, 2, "damaged")}; }},
      {"spec.ranks: must be 2, the ranks of checkpoint set 5 of job lbm", false,
       [](Observed& o) { o.job.spec.ranks = 3; }},
      {"spec.ranks: must be 0", false, [](Observed& o) { o.source->sets[1].digests = "no base64"; }},
  };
  for (const Case& one : cases) {
    Observed o = job_that_wants();
    one.change(o);
    crds::BspJobStatus status;
    const Adoption adoption = adopt_set(o, status);
    EXPECT_THAT(adoption.trouble, HasSubstr(one.trouble));
    EXPECT_EQ(adoption.waits, one.waits) << one.trouble;
    EXPECT_FALSE(status.checkpoint) << one.trouble;
  }
}

TEST(Adoption, OfAJobWithoutRestoreFromIsNone) {
  Observed o = job_that_wants();
  o.job.spec.restore_from.reset();
  crds::BspJobStatus status;
  EXPECT_EQ(adopt_set(o, status).trouble, "");
  EXPECT_FALSE(status.checkpoint);
}

crds::ExportedSet exported_set() { return {.uid = "u-9", .epochs_used = 50, .set = set_of_ranks(12, 2)}; }

// Of another cluster, say. Nothing is asked of the operator's seed for it.
TEST(Adoption, TakesAnExportedSetWhoseKeyThePodsHave) {
  Observed o = job_that_wants();
  o.source.reset();
  crds::ExportedSet exported = exported_set();
  exported.set.of_job = "u-1";  // as somebody would forge it, who has found a grant
  exported.set.grant = "granted";
  exported.set.unusable = "no";
  o.job.spec.restore_from = crds::RestoreFrom{.exported = crds::export_text(exported), .key_secret = "key"};
  EXPECT_FALSE(awaits_source(o.job));
  crds::BspJobStatus status;
  EXPECT_EQ(adopt_set(o, status).trouble, "");
  ASSERT_THAT(status.checkpoint->sets, SizeIs(1));
  const crds::StoredSet& set = status.checkpoint->sets[0];
  EXPECT_EQ(set.id, 12u);
  EXPECT_EQ(set.of_job, "u-9");
  EXPECT_EQ(set.grant, crds::kKeyInPod);
  EXPECT_EQ(set.unusable, "");
  EXPECT_EQ(status.checkpoint->ids_used, 12u);
  EXPECT_EQ(status.epochs_used, 50u);
  choose_set(status);
  EXPECT_TRUE(is_last_adopted(*set_of_start(status), status));
}

TEST(Adoption, FailsWithAnExportedSetThatDoesNotFit) {
  Observed o = job_that_wants();
  o.job.spec.restore_from = crds::RestoreFrom{.exported = crds::export_text(exported_set()), .key_secret = "key"};
  o.job.spec.ranks = 3;
  crds::BspJobStatus status;
  EXPECT_THAT(adopt_set(o, status).trouble, HasSubstr("spec.ranks: must be 2, the ranks of the exported"));
  o.job.spec.restore_from->exported = "no base64!";
  const Adoption adoption = adopt_set(o, status);
  EXPECT_THAT(adoption.trouble, HasSubstr("spec.restoreFrom.exported: is not base64"));
  EXPECT_FALSE(adoption.waits);
  EXPECT_FALSE(status.checkpoint);
}

// A job as the API server has it, whose status names these sets.
kube::Object job_with(const std::string& name, const std::vector<crds::StoredSet>& sets) {
  crds::BspJob job;
  job.metadata.name = name;
  job.metadata.uid = "u-" + name;
  job.status.checkpoint.emplace();
  job.status.checkpoint->sets = sets;
  nlohmann::json object;
  to_json(object, job);
  return object;
}

// It waits for slots, or has yet to store its own, while the other job goes on and lets older ones go.
TEST(UsedSets, OfAJobThatRunsOnAreKept) {
  crds::StoredSet used = set_of_ranks(12, 2), own = set_of_ranks(13, 2), of_third = set_of_ranks(3, 2);
  used.of_job = "u-lbm";
  used.base = 9;
  of_third.of_job = "u-third";
  const std::vector<kube::Object> jobs = {job_with("lbm", {set_of_ranks(20, 2)}),
                                          job_with("next", {used, own}),
                                          job_with("other", {of_third}),
                                          {{"metadata", {{"name", "new"}}}},
                                          {{"metadata", {{"name", "text"}}}, {"status", "none"}}};
  const std::vector<UsedSet> found = sets_used(jobs, "u-lbm");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].by, "next");
  EXPECT_EQ(found[0].set, 12u);
  EXPECT_EQ(found[0].base, 9u);
  EXPECT_THAT(sets_used(jobs, "u-next"), SizeIs(0)) << "its own";

  const auto request = [](const migrate::Action& action) {
    return wire::read_request<wire::KeepSetsRequest>(*action.fields).value();
  };
  const migrate::Action asked =
      migrate::Action::keep_sets({"lbm-r0-g0", 0}, {.below = 21, .keep = {20, 17}, .bases = {17}});
  EXPECT_EQ(*with_used(asked, {}).fields, *asked.fields);
  const auto kept = request(with_used(asked, found));
  EXPECT_EQ(kept.below, 21u);
  EXPECT_THAT(kept.keep, ElementsAre(20, 17, 12, 9));
  EXPECT_THAT(kept.bases, ElementsAre(17, 9)) << "as far as set 12 builds on it";
  const auto base = request(with_used(asked, {{"next", 17, 0}, {"next", 20, 17}}));
  EXPECT_THAT(base.keep, ElementsAre(20, 17));
  EXPECT_THAT(base.bases, SizeIs(0)) << "that is needed for itself stays whole";
}

kube::Object in(const std::string& name_space, kube::Object job) {
  job["metadata"]["namespace"] = name_space;
  return job;
}

TEST(Orphans, AreNeverWhatAnyStatusNames) {
  crds::StoredSet used = set_of_ranks(12, 2);
  used.of_job = "u-gone";
  const std::vector<kube::Object> jobs = {in("a", job_with("lbm", {set_of_ranks(20, 2)})),
                                          in("a", {{"metadata", {{"name", "new"}, {"uid", "u-new"}}}}),
                                          in("b", job_with("next", {used})), in("b", job_with("other", {}))};
  EXPECT_THAT(jobs_that_stay(jobs, "a").value(), UnorderedElementsAre("u-lbm", "u-new", "u-gone"));
  // What can't be read may name any.
  for (const nlohmann::json& status :
       {nlohmann::json("none"), nlohmann::json({{"phase", "Running"}, {"internal", "{"}}),
        nlohmann::json({{"phase", "Running"}, {"internal", 5}}),
        nlohmann::json({{"phase", "Running"}, {"internal", "{'checkpoint':7}"}}),
        nlohmann::json({{"phase", "Running"}, {"internal", "{'checkpoint':{'sets':7}}"}}),
        nlohmann::json({{"phase", "Running"}, {"internal", "{'format':99}"}})}) {
    auto with = jobs;
    with.push_back(in("c", {{"metadata", {{"name", "x"}, {"uid", "u-x"}}}, {"status", status}}));
    EXPECT_FALSE(jobs_that_stay(with, "a")) << status;
  }
  std::vector<kube::Object> many;
  for (std::size_t i = 0; i <= kMostJobsThatStay; ++i) many.push_back(in("a", job_with(std::format("{}", i), {})));
  EXPECT_FALSE(jobs_that_stay(many, "a")) << "a request can't name them all";
}

TEST(Orphans, AreLookedForByWhoHasAMark) {
  const migrate::Action asked = migrate::Action::keep_sets({"lbm-r0-g0", 0}, {.below = 21, .keep = {20}});
  const auto with = [&](OrphanSearch search) {
    return wire::read_request<wire::KeepSetsRequest>(*with_search(asked, std::move(search)).fields).value();
  };
  const wire::KeepSetsRequest plain{.below = 21, .keep = {20}};
  EXPECT_EQ(with({}), plain);
  wire::KeepSetsRequest expected = plain;
  expected.owner = "us";
  EXPECT_EQ(with({.owner = "us"}), expected) << "it isn't known who needs what";
  expected.retain = true;
  EXPECT_EQ(with({.owner = "us", .retain = true, .stay = std::vector<std::string>{"u"}}), expected);
  expected.retain = false;
  expected.jobs = {"u"};
  expected.orphan_seconds = 604'800;
  EXPECT_EQ(with({.owner = "us", .retain = false, .stay = std::vector<std::string>{"u"}}), expected);
}

TEST(Orphans, AreOfOneOperatorOneClusterAndOneNamespace) {
  const std::string seed(net::kSeedBytes, 's'), other(net::kSeedBytes, 't');
  const std::string owner = owner_of_sets(seed, "cluster", "a").value();
  EXPECT_EQ(owner, owner_of_sets(seed, "cluster", "a").value());
  EXPECT_NE(owner, owner_of_sets(seed, "cluster", "b").value());
  EXPECT_NE(owner, owner_of_sets(other, "cluster", "a").value());
  EXPECT_NE(owner, owner_of_sets(seed, "another", "a").value()) << "the seed was copied there";
  EXPECT_EQ(owner.size(), 64u);
}

TEST(Grants, AreOfOneJobInOneNamespace) {
  const std::string seed(net::kSeedBytes, 's');
  const std::string grant = grant_of(seed, "team-a", "u-1").value();
  EXPECT_EQ(granted_sets(seed, "team-a", "u-1", grant).value(), own_sets(seed, "u-1").value());
  // As a tenant would write it into the status of a job of another namespace, or for another job.
  EXPECT_EQ(granted_sets(seed, "team-b", "u-1", grant).error().code, ErrorCode::kRefused);
  EXPECT_EQ(granted_sets(seed, "team-a", "u-2", grant).error().code, ErrorCode::kRefused);
  EXPECT_EQ(granted_sets(std::string(net::kSeedBytes, 't'), "team-a", "u-1", grant).error().code, ErrorCode::kRefused);
  for (const std::string& forged :
       {std::string(), std::string(crds::kKeyInPod), grant.substr(1), grant + "0", std::string(grant.size(), '0')})
    EXPECT_FALSE(granted_sets(seed, "team-a", "u-1", forged)) << forged;
  // No two pairs of a namespace and a uid have the same text.
  EXPECT_NE(grant_of(seed, "a in namespace b", "u").value(), grant_of(seed, "b", "u in namespace a").value());
}

}  // namespace
}  // namespace bsp::reconcile
