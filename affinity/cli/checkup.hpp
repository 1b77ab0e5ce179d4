// What `doctor` looks at: how the programs around kata-affinity are set up on this node.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ka::cli {

struct Symptom {
  enum class Level {
    kGood,
    kNote,  ///< works, and could be better
    kBad,   ///< something that was promised cannot be kept
  };

  std::string check;  ///< "nri", "kata", "debugfs", "kubelet", "cgroup", "irq", ...
  Level level = Level::kGood;
  std::string text;
  std::string advice;  ///< what to do about it; empty where all is well
};

/// "good", "note", "bad".
std::string_view level_name(Symptom::Level level);

/// What is wrong with the kernel's settings and irqbalance; nothing where all is well.
std::vector<Symptom> examine_machine(const std::filesystem::path& root);

/// Everything, that of examine_machine() last. Reads files below `root` and changes nothing.
std::vector<Symptom> examine(const std::filesystem::path& root);

}  // namespace ka::cli
