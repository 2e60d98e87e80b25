// explain, top and timeline: the screens of kubectl bsp, of a job of this machine.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/core/read_file.h"
#include "operator/cli/exit_code.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/place.h"
#include "operator/screens/explain.h"
#include "operator/screens/timeline.h"
#include "operator/screens/top.h"

namespace bsp::local {
namespace {

struct Parsed {
  std::string job;
  Place place;
};

void declare_job(cli::Command& command, Parsed& parsed) {
  command.text("--job", "NAME", "name of the job, if there are several", parsed.job);
  declare_place(command, parsed.place);
}

Result<screens::Shown> get_shown(Store& store, const std::string& name) {
  BSP_TRY(const kube::Object object, find_job(store, name));
  BSP_TRY(const auto migrations, store.list(kRankMigration, store.options().name_space));
  return screens::shown_of(object, migrations);
}

}  // namespace

Result<int> local_explain(std::span<const std::string> words) {
  Parsed parsed;
  cli::Command command("bsp-operator local explain", "Say in one screen why no rank moves, or why ranks moved.");
  declare_job(command, parsed);
  BSP_CHECK_OK(command.parse(words));
  BSP_TRY(const auto store, open_store(parsed.place));
  BSP_TRY(const auto shown, get_shown(*store, parsed.job));
  cli::print_lines(screens::explain(shown, SystemClock::now()));
  return cli::kDone;
}

Result<int> local_top(std::span<const std::string> words) {
  Parsed parsed;
  bool once = false;
  cli::Command command("bsp-operator local top",
                       "Show a job live, with a bar for each Set and rank: the computing time of a superstep.");
  declare_job(command, parsed);
  command.flag("--once", "print one frame", once);
  BSP_CHECK_OK(command.parse(words));
  const auto draw = [&](cli::ScreenSize size) -> Result<cli::Drawn> {
    BSP_TRY(const auto store, open_store(parsed.place));  // it is gone with the job
    BSP_TRY(const auto shown, get_shown(*store, parsed.job));
    return cli::Drawn{screens::top(shown, SystemClock::now(), size), crds::is_finished(shown.job.status.phase)};
  };
  return cli::show_live(draw, once);
}

Result<int> local_timeline(std::span<const std::string> words) {
  Parsed parsed;
  std::string record;
  cli::Command command("bsp-operator local timeline",
                       "Draw a job's run so far as SVG on standard output; local run --timeline draws it at the end.");
  declare_job(command, parsed);
  command.text("--record", "FILE", "the file of local run --record, for α, D and computing time", record);
  BSP_CHECK_OK(command.parse(words));
  BSP_TRY(const auto store, open_store(parsed.place));
  BSP_TRY(const auto shown, get_shown(*store, parsed.job));
  BSP_TRY(const auto calls, screens::calls_of_file(record, shown.job));
  std::fputs(screens::timeline_svg(shown, calls, Time{}, SystemClock::now()).c_str(), stdout);
  return cli::kDone;
}

}  // namespace bsp::local
