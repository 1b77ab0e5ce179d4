// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/helper.hpp"

#include <fcntl.h>
#include <systemd/sd-daemon.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "affinity/config/config.hpp"
#include "affinity/helper/cgroup_tree.hpp"
#include "affinity/helper/cpu_power.hpp"
#include "affinity/helper/guarded_threads.hpp"
#include "affinity/helper/keeper.hpp"
#include "affinity/helper/kernel_threads.hpp"
#include "affinity/helper/partition_keeper.hpp"
#include "affinity/helper/partition_records.hpp"
#include "affinity/helper/partition_service.hpp"
#include "affinity/helper/power_keeper.hpp"
#include "affinity/helper/quota_keeper.hpp"
#include "affinity/helper/quota_service.hpp"
#include "affinity/helper/rdt_keeper.hpp"
#include "affinity/helper/rdt_records.hpp"
#include "affinity/helper/rdt_service.hpp"
#include "affinity/helper/resctrl.hpp"
#include "affinity/helper/scheduling.hpp"
#include "affinity/helper/service.hpp"
#include "affinity/helper/vmm_exits.hpp"
#include "affinity/helper/vmm_threads.hpp"
#include "affinity/host/topology.hpp"
#include "base/boot_offset.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/http/listen.hpp"
#include "base/http/server.hpp"
#include "base/log/log.hpp"
#include "base/private_directory.hpp"
#include "base/process.hpp"
#include "base/rpc/timer.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

constexpr std::chrono::seconds kCheck(10), kRetry(1);
constexpr int kMostRetries = 30;  ///< of --restore

Result<Limits> read_limits(const Options& options) {
  const auto config = config::load_config(options.config);
  if (!config) return unexpected(config.error());
  return Limits{config->quiet.floor, config->kubelet_state};
}

/// What two helpers record would contradict.
Result<base::Fd> own(const std::filesystem::path& state) {
  const auto made = base::make_private_directory(state);
  if (!made) return unexpected(made.error());
  auto lock = base::lock_file(state / "lock");
  if (lock || lock.error().code != ErrorCode::kConflict) return lock;
  return fail(ErrorCode::kConflict, "another helper uses " + state.string() + "; stop it first");
}

/// The socket that systemd listens on for us (sd_listen_fds(3)).
Result<base::Fd> inherited_socket() {
  if (sd_listen_fds(1) != 1) {
    return fail(ErrorCode::kInvalid,
                "no socket: start kata-affinity-helper.socket, or give --socket");
  }
  base::Fd socket(SD_LISTEN_FDS_START);
  if (::fcntl(socket.get(), F_SETFL, O_NONBLOCK) == 0) return socket;
  return base::fail_errno(errno, "the socket of systemd");
}

class Helper {
 public:
  Helper(const Options& options, const base::Clock& clock, policy::Topology machine,
         std::string boot_id)
      : clock_(clock),
        log_(log::Level::kInfo, clock),
        keeper_(all_host_masks(options.roots, clock, guarded_threads(options.roots)),
                RecordFile<MaskRecords>(options.state, boot_id), log_),
        resctrl_(options.roots),
        rdt_(resctrl_, VmmThreads(options.roots.proc),
             RecordFile<RdtRecords>(options.state, boot_id), log_),
        cgroups_(options.roots.proc, options.roots.systemd, clock),
        scheduling_(options.roots.proc, options.roots.sys / "kernel/debug"),
        kernel_threads_(options.roots, calls_),
        partitions_(cgroups_, scheduling_, VmmThreads(options.roots.proc), kernel_threads_,
                    RecordFile<PartitionRecords>(options.state, boot_id), log_),
        cpu_power_(options.roots.sys),
        power_(cpu_power_, RecordFile<PowerRecords>(options.state, boot_id), log_),
        quotas_(cgroups_, RecordFile<QuotaRecords>(options.state, std::move(boot_id)), log_),
        service_(keeper_, std::move(machine),
                 {[options] { return read_limits(options); },
                  [options](const policy::CpuSet& online) {
                    return host::changed_topology(options.topology, online);
                  }}),
        partition_service_(partitions_, power_,
                           [this](const policy::CpuSet& cpus) { return admit_isolated(cpus); }),
        quota_service_(quotas_, cgroups_, VmmThreads(options.roots.proc), calls_,
                       [this](const policy::CpuSet& cpus) { return service_.admit_now(cpus); }),
        exits_(VmmThreads(options.roots.proc),
               [this](const policy::ThreadKey& vmm) {
                 partition_service_.ended(vmm);
                 boost::asio::post(io_, [this] { wait(); });
               }),
        timer_(io_, clock_) {
    keeper_.adopt();
    rdt_.adopt();
    partitions_.adopt();
    power_.adopt();
    quotas_.adopt();
  }

  void serve(int listener) {
    boost::asio::signal_set signals(io_, SIGTERM, SIGINT);
    signals.async_wait([this](auto, int) { io_.stop(); });
    const Verbs verbs{{Service::kPath, service_.verb()},
                      {kRdtPath, rdt_verb(rdt_)},
                      {PartitionService::kPath, partition_service_.verb()},
                      {PartitionService::kPowerPath, partition_service_.power_verb()},
                      {QuotaService::kPath, quota_service_.verb()}};
    check();
    const http::Server server(
        io_, clock_, listener,
        [&](const http::Request& request) {
          http::Response response = respond(verbs, request);
          wait();
          return response;
        },
        [this](const std::string& trouble) {
          log_.warning("cannot accept connections", {{"reason", trouble}});
        });
    wait();
    io_.run();
  }

  /// Some of it takes systemd a moment.
  Result<void> restore() {
    for (int i = 0; i < kMostRetries; ++i) {
      const std::string of_partitions = partition_service_.restore();
      keeper_.keep_off({}, {});
      rdt_.keep({});
      quotas_.keep({});
      for (const std::string& problem :
           {of_partitions, keeper_.state().problem, rdt_.state().problem, quotas_.problem()}) {
        if (!problem.empty()) return fail(ErrorCode::kUnavailable, problem);
      }
      if (!holds()) return {};
      clock_.sleep(kRetry);
    }
    return fail(ErrorCode::kUnavailable,
                "something could not be put back; what, is recorded in " + file_held().string());
  }

 private:
  /// Beside those that the host is kept off already.
  base::Result<policy::CpuSet> admit_isolated(const policy::CpuSet& cpus) {
    if (cpus.empty()) return cpus;
    auto admitted = service_.admit_now(cpus | keeper_.quiet());
    if (admitted) *admitted &= cpus;
    return admitted;
  }

  /// Of their own: partitions are also ended on another thread.
  std::unique_ptr<HostMasks> guarded_threads(const Roots& roots) {
    return std::make_unique<GuardedThreads>(
        std::make_unique<KernelThreads>(roots, calls_),
        GuardedThreads::Overwritten{
            [this](const std::string& thread) { return partition_service_.overwritten(thread); },
            [this](const std::string& thread) { partition_service_.forget_overwritten(thread); },
            [this] { partition_service_.save_overwritten(); }});
  }

  bool holds() const {
    return keeper_.holds() || rdt_.holds() || quotas_.holds() || partition_service_.holds();
  }

  const std::filesystem::path& file_held() const {
    if (keeper_.holds()) return keeper_.file();
    if (rdt_.holds()) return rdt_.file();
    if (quotas_.holds()) return quotas_.file();
    return power_.holds() ? power_.file() : partitions_.file();
  }

  bool is_unfinished() const {
    return keeper_.is_unfinished() || rdt_.is_unfinished() || partition_service_.is_unfinished();
  }

  void check() {
    if (partition_service_.holds()) partition_service_.check();
    if (keeper_.holds()) service_.check();
    if (rdt_.holds()) rdt_.check();
    if (quotas_.holds()) quotas_.check();
  }

  void retry() {
    if (partition_service_.is_unfinished()) partition_service_.check();
    if (keeper_.is_unfinished()) service_.check();
    if (rdt_.is_unfinished()) rdt_.check();
  }

  void wait() {
    exits_.watch(partition_service_.vmms());
    if (!holds()) return timer_.cancel();
    const bool is_soon = is_unfinished();
    const bool is_partial = is_soon && retries_ < kCheck / kRetry;
    retries_ = is_partial ? retries_ + 1 : 0;
    timer_.in(is_soon ? kRetry : kCheck, [this, is_partial] {
      if (is_partial) {
        retry();
      } else {
        check();
      }
      wait();
    });
  }

  const base::Clock& clock_;
  boost::asio::io_context io_;
  log::Log log_;
  host::KernelAffinityCalls calls_;
  Keeper keeper_;
  ResctrlFiles resctrl_;
  RdtKeeper rdt_;
  CgroupTreeFiles cgroups_;
  KernelScheduling scheduling_;
  KernelThreads kernel_threads_;
  PartitionKeeper partitions_;
  CpuPowerFiles cpu_power_;
  PowerKeeper power_;
  QuotaKeeper quotas_;
  Service service_;
  PartitionService partition_service_;
  QuotaService quota_service_;
  VmmExits exits_;
  rpc::Timer timer_;
  int retries_ = 0;  ///< since all was looked at
};

Result<void> serve(Helper& helper, const Options& options) {
  if (options.socket.empty()) {
    const auto socket = inherited_socket();
    if (!socket) return unexpected(socket.error());
    helper.serve(socket->get());
    return {};
  }
  const auto listener = http::UnixListener::open(options.socket);
  if (!listener) return unexpected(listener.error());
  helper.serve(listener->fd());
  return {};
}

}  // namespace

Result<void> run(const Options& options) {
  const base::Clock clock;
  if (const auto limits = read_limits(options); !limits && !options.restore) {
    return unexpected(limits.error());
  }
  if (const auto& offset = base::boot_offset(); !offset) return unexpected(offset.error());
  const auto lock = own(options.state);
  if (!lock) return unexpected(lock.error());
  auto boot_id = base::ProcFs(options.roots.proc).boot_id();
  if (!boot_id) return unexpected(boot_id.error());
  auto machine = host::load_topology(options.topology);
  if (!machine) return unexpected(machine.error());
  Helper helper(options, clock, *std::move(machine), *std::move(boot_id));
  return options.restore ? helper.restore() : serve(helper, options);
}

}  // namespace ka::helper
