#include "sim/reproduce/workers.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "sim/child.h"

namespace bsp::sim {
namespace {

std::span<const std::byte> bytes_of_word(const std::uint64_t& word) { return std::as_bytes(std::span(&word, 1)); }

// Runs in the worker: reads the number of a run, then writes the answer's length and the answer. An error starts with
// "!".
void serve_runs(std::span<const RunKey> keys, int channel) {
  std::uint64_t number = 0;
  while (read_fully(channel, std::as_writable_bytes(std::span(&number, 1)))) {
    const auto result = run(keys[number]);
    const std::string answer = result ? to_json(*result) : "!" + result.error().message;
    write_fully(channel, bytes_of_word(answer.size()));
    write_fully(channel, std::as_bytes(std::span(answer)));
  }
}

Result<RunResult> ask(Child& worker, std::uint64_t number) {
  BSP_CHECK_OK(worker.write(bytes_of_word(number)));
  BSP_TRY(const std::string answer, worker.read_all());
  if (answer.starts_with('!')) return fail(ErrorCode::kFailed, answer.substr(1));
  return run_result_from_json(answer);
}

}  // namespace

Result<std::map<RunKey, RunResult>> run_all(std::span<const RunKey> keys, unsigned processes,
                                            const std::function<void(const Progress&)>& report) {
  const std::set<RunKey> once(keys.begin(), keys.end());
  std::vector<RunKey> queue(once.begin(), once.end());
  std::ranges::stable_sort(queue, std::ranges::greater{}, expected_cost);

  // Fork all workers before starting the first thread, so that each starts with one thread.
  std::vector<Child> workers;
  for (unsigned w = 0; w < std::min<std::size_t>(std::max(1u, processes), queue.size()); ++w) {
    BSP_TRY(Child worker, Child::start([&queue](int channel) { serve_runs(queue, channel); }));
    workers.push_back(std::move(worker));
  }
  const auto start = std::chrono::steady_clock::now();
  std::mutex mutex;  // of all that follows
  std::size_t next = 0, done = 0;
  std::map<RunKey, RunResult> results;
  std::optional<Error> error;
  const auto drive = [&](Child& worker) {
    while (true) {
      std::size_t number = 0;
      {
        const std::lock_guard lock(mutex);
        if (error || next == queue.size()) return;
        number = next++;
      }
      auto result = ask(worker, number);
      const std::lock_guard lock(mutex);
      if (!result) {
        if (!error) error = result.error().in(queue[number].name());
        return;
      }
      results.emplace(queue[number], *std::move(result));
      const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
      if (report) report({++done, queue.size(), queue[number], since.count()});
    }
  };
  {
    std::vector<std::jthread> threads;
    for (Child& worker : workers) threads.emplace_back(drive, std::ref(worker));
  }
  if (error) return std::unexpected(*error);
  return results;
}

}  // namespace bsp::sim
