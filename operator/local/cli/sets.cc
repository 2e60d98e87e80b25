// checkpoint and checkpoints: a job's checkpoint sets.
#include <cstdio>

#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "crds/names.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/place.h"
#include "operator/local/cli/resources.h"
#include "operator/screens/sets.h"

namespace bsp::local {
namespace {

// The operator writes the job too.
constexpr int kTries = 8;

Result<void> annotate(Store& store, kube::Object object, const std::string& value) {
  const kube::Key key{kBspJob, store.options().name_space, text_at(part_at(object, "metadata"), "name")};
  for (int again = 1;; ++again) {
    object["metadata"]["annotations"][std::string(names::kAnnotationCheckpoint)] = value;
    const auto updated = store.update(object);
    if (updated) return {};
    if (updated.error().code != ErrorCode::kConflict || again == kTries) return std::unexpected(updated.error());
    BSP_TRY(object, store.get(key));
  }
}

}  // namespace

Result<int> local_checkpoint(std::span<const std::string> words) {
  std::string name;
  bool waits = false;
  Place place;
  cli::Command command("bsp-operator local checkpoint", "Make a checkpoint set of a job now.");
  command.text("--job", "NAME", "name of the job, if there are several", name);
  command.flag("--wait", "wait until it is stored; exit status 0 if it is", waits);
  declare_place(command, place);
  BSP_CHECK_OK(command.parse(words));
  BSP_TRY(const auto store, open_store(place));
  BSP_TRY(const kube::Object object, find_job(*store, name));
  BSP_TRY(const auto job, crds::bsp_job_from_json(object));
  BSP_TRY(const auto wanted, screens::want_set(job, SystemClock::now()));
  BSP_CHECK_OK(annotate(*store, object, wanted.value));
  if (!waits) {
    std::printf("bspjob.%s/%s annotated\n", std::string(names::kGroup).c_str(), job.metadata.name.c_str());
    return 0;
  }
  std::string cursor;
  for (;;) {
    BSP_TRY(const auto events, store->wait({kBspJob}, place.name_space, cursor, std::chrono::seconds(1)));
    for (const auto& event : events) {
      if (text_at(part_at(event.object, "metadata"), "name") != job.metadata.name) continue;
      if (event.type == kube::EventType::kDeleted)
        return fail(ErrorCode::kNotFound, job.metadata.name + " was deleted");
      BSP_TRY(const auto now, crds::bsp_job_from_json(event.object));
      if (const auto outcome = screens::outcome_of(wanted, now)) {
        BSP_CHECK_OK(*outcome);
        std::puts((*outcome)->c_str());
        return 0;
      }
    }
  }
}

Result<int> local_checkpoints(std::span<const std::string> words) {
  std::string name;
  Place place;
  cli::Command command("bsp-operator local checkpoints", "List the checkpoint sets of a job.");
  command.text("--job", "NAME", "name of the job, if there are several", name);
  declare_place(command, place);
  BSP_CHECK_OK(command.parse(words));
  BSP_TRY(const auto store, open_store(place));
  BSP_TRY(const kube::Object object, find_job(*store, name));
  BSP_TRY(const auto job, crds::bsp_job_from_json(object));
  std::fputs(screens::sets_table(job, SystemClock::now()).c_str(), stdout);
  return 0;
}

}  // namespace bsp::local
