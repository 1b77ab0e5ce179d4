// SPDX-License-Identifier: Apache-2.0
// Keeps the host off some CPUs: brings each of its masks to what is wanted, as often as others
// change them, and puts all back in the end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "affinity/helper/host_masks.hpp"
#include "affinity/helper/mask_records.hpp"
#include "affinity/helper/record_file.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::helper {

/// A mask that may still be used on the CPUs that the host is kept off.
struct Left {
  std::string name;  ///< its title
  policy::CpuSet cpus;
  std::string why;
};

struct KindState {
  std::string kind;
  int found = 0, moved = 0;  ///< moved: something of ours is there
  std::vector<Left> left;
  std::string problem;  ///< why this kind cannot be read; empty: it was
};

struct State {
  policy::CpuSet quiet;
  std::vector<KindState> kinds;
  std::string problem;             ///< why nothing can be written; empty: nothing is in the way
  policy::CpuSet interrupts = {};  ///< as in QuietState
};

class Keeper {
 public:
  /// `log` must outlive it.
  Keeper(AllHostMasks kinds, RecordFile<MaskRecords> file, const log::Log& log);

  /// Takes over what an earlier helper recorded. Where that cannot be read, nothing is ever
  /// written: state() says why.
  void adopt();
  /// From now on the host is kept off these, and its interrupts also off `interrupts`; both empty:
  /// all is put back.
  void keep_off(const policy::CpuSet& quiet, const policy::CpuSet& kept,
                const policy::CpuSet& interrupts = {});
  /// Looks at all masks again.
  void check();

  const policy::CpuSet& quiet() const { return records_.quiet; }
  const policy::CpuSet& interrupts() const { return records_.interrupts; }
  /// Something of ours is there, or is to be: check() is needed.
  bool holds() const { return !records_.empty(); }
  /// Something failed that may succeed soon.
  bool is_unfinished() const { return is_unfinished_; }
  /// Where what was written is recorded.
  const std::filesystem::path& file() const { return file_.path(); }
  /// As the last look found it.
  const State& state() const { return state_; }

 private:
  /// One mask of a kind, and what becomes of it.
  struct Item {
    HostMask mask;
    MaskKey key;
    policy::plan::HostMaskPlan plan;
    bool is_written = false;
    std::string problem;  ///< of its write
  };

  policy::CpuSet avoided_by(const HostMasks& kind) const;
  void note_those_before();
  void bring(const HostMasks& kind);
  void record_new(const HostMasks& kind, const std::vector<HostMask>& found);
  std::vector<Item> plan(const HostMasks& kind, std::vector<HostMask> found);
  std::optional<policy::plan::HostRecord> record_of(const MaskKey& key,
                                                    const policy::CpuSet& now) const;
  bool is_to_be_written(const Item& item) const;
  bool record(const std::vector<Item>& items);
  void write(const HostMasks& kind, Item& item);
  bool reread(const HostMasks& kind, std::vector<Item>& items);
  void drop_records(const std::vector<Item>& items, std::string_view kind);
  void report(const HostMasks& kind, const std::vector<Item>& items);
  std::string why_left(const Item& item) const;
  void save();

  AllHostMasks kinds_;
  RecordFile<MaskRecords> file_;
  const log::Log& log_;
  MaskRecords records_;
  policy::CpuSet kept_;                                 ///< what the host has beside `quiet`
  std::map<MaskKey, std::string> refused_;              ///< what the kernel will never do, and why
  std::map<MaskKey, policy::plan::HostRecord> before_;  ///< the records when this look began
  bool is_unfinished_ = false;
  State state_;
};

}  // namespace ka::helper
