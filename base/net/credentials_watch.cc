#include "base/net/credentials_watch.h"

#include <utility>

#include "base/core/log.h"

namespace bsp::net {

CredentialsWatch::CredentialsWatch(Loop& loop, TlsContext context, std::string directory, Credentials loaded,
                                   std::chrono::milliseconds interval)
    : loop_(loop),
      context_(std::move(context)),
      directory_(std::move(directory)),
      seen_(std::move(loaded)),
      interval_(interval) {
  schedule();
}

void CredentialsWatch::schedule() {
  timer_ = loop_.after(interval_, [this] {
    reload();
    schedule();
  });
}

void CredentialsWatch::reload() {
  auto now = load_credentials(directory_);
  if (!now || *now == seen_) return;
  seen_ = std::move(*now);
  if (auto renewed = context_.renew(seen_); !renewed)
    return log_warning("renewed credentials are unusable, will retry",
                       {{"directory", directory_}, {"reason", renewed.error().message}});
  log_info("credentials renewed", {{"directory", directory_}});
}

}  // namespace bsp::net
