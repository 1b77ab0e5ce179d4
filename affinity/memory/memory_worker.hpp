// SPDX-License-Identifier: Apache-2.0
// Reads where memory lies and moves it, on a separate thread: reading is slow in the kernel, and
// moving takes time in proportion to the memory. Nothing waits for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "affinity/board/views.hpp"
#include "affinity/host/memory.hpp"
#include "base/clock.hpp"
#include "base/process.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/facts/topology.hpp"

namespace ka::memory {

/// One job: reads one sandbox's memory.
struct MemoryJob {
  std::string sandbox;
  policy::ProcessId vmm;  ///< another process with its number is not touched
  policy::NodeSet mems;   ///< where its memory should be
  bool move = false;      ///< and move it there
  std::shared_ptr<const policy::Topology> topology;
};

/// Executes such jobs.
class MemoryJobs {
 public:
  MemoryJobs() = default;
  MemoryJobs(const MemoryJobs&) = delete;
  MemoryJobs& operator=(const MemoryJobs&) = delete;
  virtual ~MemoryJobs() = default;

  /// Replaces what was asked for the same sandbox before; where that has begun, it ends early.
  virtual void submit(MemoryJob job) = 0;
  /// Ends what was asked for a sandbox.
  virtual void cancel(const std::string& sandbox) = 0;
};

class MemoryWorker final : public MemoryJobs {
 public:
  /// Called on the worker's thread: once when memory was read, then now and then while it is moved,
  /// and at the end (`moving` false). `elapsed` is how long reading kept the kernel busy. Nothing
  /// reports a process that is gone; a job that was cancelled may still report once.
  using Report = std::function<void(const std::string& sandbox, board::MemoryView view,
                                    std::chrono::nanoseconds elapsed)>;

  /// `clock` must outlive it.
  MemoryWorker(const base::Clock& clock, base::ProcFs proc, std::filesystem::path sys,
               Report report);
  MemoryWorker(const MemoryWorker&) = delete;
  MemoryWorker& operator=(const MemoryWorker&) = delete;
  /// Waits for the step that is being made, a few milliseconds.
  ~MemoryWorker() override;

  void submit(MemoryJob job) override;
  void cancel(const std::string& sandbox) override;

 private:
  void work();
  std::optional<MemoryJob> next();
  void run(const MemoryJob& job);
  void move(const MemoryJob& job, board::MemoryView view, std::vector<host::Mapping> mappings);
  bool observe(const MemoryJob& job, board::MemoryView& view, std::vector<host::Mapping>& mappings);
  bool is_same(const MemoryJob& job) const;
  base::Result<void> check_after(const MemoryJob& job) const;
  bool pause(std::chrono::nanoseconds time);
  bool cancelled();
  void drop(const std::string& sandbox);

  const base::Clock& clock_;
  base::ProcFs proc_;
  std::filesystem::path sys_;
  Report report_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<MemoryJob> waiting_;
  std::string running_;     ///< the sandbox whose job runs; empty: none
  bool cancelled_ = false;  ///< that job is to end
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ka::memory
