// Keeps a context as new as the files of a directory, which a kubelet replaces while the pod runs.
#pragma once

#include <chrono>
#include <string>

#include "base/net/loop.h"
#include "base/net/tls.h"

namespace bsp::net {

// On the loop's thread. Files that can't be used, as they may be seen in the middle of a replacement, change nothing and are
// read again at the next interval.
class CredentialsWatch {
 public:
  // `loaded`: what the context was made from.
  CredentialsWatch(Loop& loop, TlsContext context, std::string directory, Credentials loaded,
                   std::chrono::milliseconds interval = std::chrono::seconds(10));
  ~CredentialsWatch() { loop_.cancel(timer_); }
  CredentialsWatch(const CredentialsWatch&) = delete;
  CredentialsWatch& operator=(const CredentialsWatch&) = delete;

 private:
  void wait();
  void look();

  Loop& loop_;
  TlsContext context_;
  const std::string directory_;
  Credentials seen_;  // last, good or not
  const std::chrono::milliseconds interval_;
  Loop::TimerId timer_ = 0;
};

}  // namespace bsp::net
