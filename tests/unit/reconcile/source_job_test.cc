// spec.restoreFrom: the job that is read, and whom it allows its sets.
#include "operator/reconcile/shell/job/source_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "base/net/pki.h"
#include "crds/stored_status.h"
#include "operator/local/files.h"
#include "operator/local/store.h"
#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/reconcile/forwarding_client.h"

namespace bsp::reconcile {
namespace {

using kube::Object;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Whatever is asked for, it answers with this.
class Answers final : public ForwardingClient {
 public:
  explicit Answers(kube::Client& unused) : ForwardingClient(unused) {}
  Result<Object> get(const kube::Key& key) override {
    asked = key;
    return answer;
  }
  Result<Object> answer = fail(ErrorCode::kNotFound, "bspjobs \"lbm\" not found");
  kube::Key asked = {};
};

class ReadSource : public ::testing::Test {
 protected:
  ReadSource() {
    char path[] = "/tmp/bsp-source-test-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = std::move(local::Store::open({.root = root_})).value();
    server_ = std::make_unique<Answers>(*store_);
    job_.metadata.name = "next";
    job_.metadata.name_space = "team-b";
    job_.spec.restore_from = crds::RestoreFrom{.job = "lbm", .name_space = "team-a"};
  }
  ~ReadSource() override {
    store_.reset();
    EXPECT_TRUE(local::remove_tree(root_));
  }
  // With a set of its own, number 5, and the one with which it began, number 4.
  static Object source(const std::vector<std::string>& allowed) {
    crds::BspJob job;
    job.metadata.name = "lbm";
    job.metadata.name_space = "team-a";
    job.metadata.uid = "u-1";
    job.spec.ranks = 1;
    job.spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}, {"command", {"solver"}}}}}}}};
    job.spec.checkpoint.allowed_namespaces = allowed;
    job.spec.checkpoint.storage.emplace().host_path = crds::HostPathSource{"/sets"};
    job.status.epochs_used = 40;
    for (const std::uint64_t id : {4, 5}) {
      crds::StoredSet& set =
          (job.status.checkpoint ? *job.status.checkpoint : job.status.checkpoint.emplace()).sets.emplace_back();
      set.id = id;
      if (id == 4) set.of_job = "u-0", set.grant = "of u-0 in team-a";
    }
    json object;
    to_json(object, job);
    // Not in one text, so that a test reaches each part of it.
    object["status"] = crds::whole_status(object["status"]).value();
    return object;
  }
  SourceJob read() {
    return read_source(*server_, job_, [](const std::string& uid) -> Result<std::string> { return "for " + uid; });
  }

  std::string root_;
  std::unique_ptr<local::Store> store_;
  std::unique_ptr<Answers> server_;
  crds::BspJob job_;
};

auto id_is(std::uint64_t id) { return Field(&crds::StoredSet::id, id); }

TEST_F(ReadSource, OfTheSameNamespaceGivesAllItsSets) {
  job_.metadata.name_space = "team-a";
  for (const char* name_space : {"", "team-a"}) {
    job_.spec.restore_from->name_space = name_space;
    server_->answer = source({});
    const SourceJob found = read();
    EXPECT_EQ(found.trouble, "");
    EXPECT_EQ(server_->asked.name_space, "team-a");
    EXPECT_THAT(found.sets, ElementsAre(id_is(4), id_is(5)));
    EXPECT_EQ(found.grant, "for u-1");
    EXPECT_EQ(found.epochs_used, 40u);
  }
}

TEST_F(ReadSource, OfAnotherNamespaceGivesTheSetsThatItHasMadeIfItAllowsThat) {
  server_->answer = source({"team-c", "team-b"});
  const SourceJob found = read();
  EXPECT_EQ(found.trouble, "");
  EXPECT_EQ(server_->asked.name_space, "team-a");
  EXPECT_EQ(server_->asked.name, "lbm");
  EXPECT_THAT(found.sets, ElementsAre(id_is(5))) << "who made 4 has allowed nobody but team-a";
  EXPECT_EQ(found.uid, "u-1");
  EXPECT_EQ(found.grant, "for u-1");
}

TEST_F(ReadSource, WhoIsNotAllowedDoesNotLearnWhetherThereIsAJob) {
  const std::string none = read().trouble;
  EXPECT_EQ(none, "there is no job lbm in namespace team-a whose spec.checkpoint.allowedNamespaces names team-b");
  for (const std::vector<std::string>& allowed :
       {std::vector<std::string>{}, {"team-a"}, {"team"}, {"team-b2"}, {"TEAM-B"}, {""}, {"*"}}) {
    server_->answer = source(allowed);
    const SourceJob found = read();
    EXPECT_EQ(found.trouble, none);
    EXPECT_EQ(found.grant, "");
    EXPECT_EQ(found.uid, "");
    EXPECT_THAT(found.sets, IsEmpty());
  }
  server_->answer = source({});
  (*server_->answer)["metadata"]["deletionTimestamp"] = "2026-11-29T10:00:00Z";
  EXPECT_EQ(read().trouble, none);
  (*server_->answer)["spec"] = "text";
  EXPECT_EQ(read().trouble, none);
}

TEST_F(ReadSource, NobodyIsOfferedWhatTheOtherJobWasGrantedItself) {
  server_->answer = source({"team-b"});
  (*server_->answer)["status"]["checkpoint"]["sets"].erase(1);
  const SourceJob found = read();
  EXPECT_THAT(found.trouble, HasSubstr("job lbm has only the set with which it began"));
  EXPECT_EQ(found.grant, "");
}

TEST_F(ReadSource, AnAnswerOfAnotherJobIsNone) {
  for (const char* field : {"name", "namespace", "uid"}) {
    server_->answer = source({"team-b"});
    (*server_->answer)["metadata"][field] = field == std::string("uid") ? "" : "victim";
    const SourceJob found = read();
    EXPECT_THAT(found.trouble, HasSubstr("there is no job lbm in namespace team-a")) << field;
    EXPECT_EQ(found.grant, "") << field;
  }
}

TEST_F(ReadSource, WhatIsWrongIsSaid) {
  server_->answer = fail(ErrorCode::kRefused, "bspjobs is forbidden");
  EXPECT_EQ(read().trouble, "bspjobs is forbidden");
  server_->answer = source({"team-b"});
  (*server_->answer)["metadata"]["deletionTimestamp"] = "2026-11-29T10:00:00Z";
  EXPECT_THAT(read().trouble, HasSubstr("is being deleted"));
  (*server_->answer)["spec"]["checkpoint"]["reclaimPolicy"] = "Retain";
  EXPECT_EQ(read().trouble, "");
  const SourceJob refused = read_source(*server_, job_, [](const std::string&) -> Result<std::string> {
    return fail(ErrorCode::kUnavailable, "the seed can't be read");
  });
  EXPECT_EQ(refused.trouble, "the seed can't be read");
  EXPECT_THAT(refused.sets, IsEmpty());
}

// Null, text and all else at each path of the other job: no grant without consent, and no set of a third job.
TEST_F(ReadSource, ThereIsNoGrantWithoutConsentWhateverTheJobLooksLike) {
  const Object good = source({"team-b"});
  hostile::at_every_place(good, [&](const json& bad, const json::json_pointer&) {
    server_->answer = bad;
    const SourceJob found = read();
    if (found.grant.empty()) {
      EXPECT_NE(found.trouble, "") << bad;
      return;
    }
    const json& allowed = part_at(part_at(part_at(bad, "spec"), "checkpoint"), "allowedNamespaces");
    EXPECT_TRUE(std::ranges::contains(allowed, json("team-b"))) << bad;
    EXPECT_EQ(part_at(part_at(bad, "metadata"), "uid"), json(found.uid)) << bad;
    for (const crds::StoredSet& set : found.sets) EXPECT_EQ(set.of_job, "") << bad;
  });
}

}  // namespace
}  // namespace bsp::reconcile
