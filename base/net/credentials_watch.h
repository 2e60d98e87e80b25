// Renews a context from the files in a directory, which the kubelet replaces while the pod runs.
#pragma once

#include <chrono>
#include <string>

#include "base/net/loop.h"
#include "base/net/tls.h"

namespace bsp::net {

// Runs on the loop's thread. Unusable files, which may be half replaced, change nothing; the next interval reads them
// again.
class CredentialsWatch {
 public:
  // `loaded`: the credentials that the context was created from.
  CredentialsWatch(Loop& loop, TlsContext context, std::string directory, Credentials loaded,
                   std::chrono::milliseconds interval = std::chrono::seconds(10));
  ~CredentialsWatch() { loop_.cancel(timer_); }
  CredentialsWatch(const CredentialsWatch&) = delete;
  CredentialsWatch& operator=(const CredentialsWatch&) = delete;

 private:
  void schedule();
  void reload();

  Loop& loop_;
  TlsContext context_;
  const std::string directory_;
  Credentials seen_;  // read last, usable or not
  const std::chrono::milliseconds interval_;
  Loop::TimerId timer_ = 0;
};

}  // namespace bsp::net
