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

  std::string check;  ///< "nri", "kata", "debugfs", "kubelet"
  Level level = Level::kGood;
  std::string text;
  std::string advice;  ///< what to do about it; empty where all is well
};

/// "good", "note", "bad".
std::string_view level_name(Symptom::Level level);

/// Reads files below `root` and changes nothing.
std::vector<Symptom> examine(const std::filesystem::path& root);

}  // namespace ka::cli
