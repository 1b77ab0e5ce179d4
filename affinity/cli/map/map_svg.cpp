// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/map/map_svg.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "affinity/cli/terminal/screen.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::cli {
namespace {

// Pixels.
constexpr int kCpuWidth = 124, kCpuHeight = 62, kGap = 6, kTitle = 20, kRow = 24, kHeat = 4;
/// Room for a letter of 13 and of 16 pixels.
constexpr int kLetter = 8, kBigLetter = 10;
constexpr int kCoresWide = 900, kCachesWide = 940, kNodesWide = 980, kSocketsWide = 1020;
/// Characters of a line of the legend, and of a CPU's vCPUs.
constexpr std::size_t kLegendColumns = 110, kCpuColumns = 15;

/// Owned CPUs are light in the dark scheme too: their colours identify the owner.
constexpr const char* kStyle =
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.title{fill:#59636e}.paper{fill:#fff}"
    ".number,.sign{font-weight:bold}.sign{font-size:16px;text-anchor:end}"
    ".head{font-size:16px;font-weight:bold}.box{fill:none;stroke:#818b98}"
    ".cpu rect{stroke:#59636e;fill:#fff}.offline rect{stroke-dasharray:3 3}"
    ".conflict rect{stroke:#c00;stroke-width:3}.cpu rect.heat{fill:#c00;stroke:none}"
    "@media (prefers-color-scheme:dark){.paper{fill:#0d1117}text{fill:#f0f6fc}"
    ".title{fill:#9198a1}.box{stroke:#656c76}.cpu rect{fill:#212830;stroke:#656c76}.conflict "
    "rect{stroke:#f85149}"
    ".owned text{fill:#1f2328}}";

/// Light enough for black letters.
constexpr std::array<const char*, 8> kColours{"#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6",
                                              "#fb9a99", "#ffff99", "#80cdc1", "#dfc27d"};

/// A piece of the picture with its corner at 0, 0.
struct Piece {
  std::string svg;
  int width = 0, height = 0;
};

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else {
      safe += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return safe;
}

std::string clipped(const std::string& text, std::size_t columns) {
  return text.size() <= columns ? text : text.substr(0, columns - 3) + "...";
}

std::string text_at(int x, int y, const char* kind, std::string_view text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, kind, escaped(text));
}

std::string moved(const Piece& piece, int x, int y) {
  return fmt::format("<g transform=\"translate({},{})\">\n{}</g>\n", x, y, piece.svg);
}

/// Side by side as far as `widest` allows, then in a next row.
Piece flow(const std::vector<Piece>& pieces, int widest) {
  Piece all;
  int x = 0, y = 0, row = 0;
  for (const Piece& piece : pieces) {
    if (x > 0 && x + piece.width > widest) {
      x = 0;
      y += row + kGap;
      row = 0;
    }
    all.svg += moved(piece, x, y);
    all.width = std::max(all.width, x + piece.width);
    x += piece.width + kGap;
    row = std::max(row, piece.height);
  }
  all.height = y + row;
  return all;
}

/// In a frame with a title.
Piece framed(const std::string& title, const Piece& inner) {
  Piece piece;
  piece.width = std::max(inner.width, 70) + 2 * kGap;
  piece.height = inner.height + kTitle + kGap;
  piece.svg = fmt::format("<rect class=\"box\" width=\"{}\" height=\"{}\" rx=\"4\"/>\n",
                          piece.width, piece.height);
  piece.svg += text_at(kGap, kTitle - 5, "title", title) + moved(inner, kGap, kTitle);
  return piece;
}

std::string colour_of(std::size_t owner) { return kColours[owner % kColours.size()]; }

std::string filled(const std::string& colour) { return " style=\"fill:" + colour + '"'; }

/// What a CPU is for, in a word or two.
std::string use_of(const NodeMap& map, const MapCpu& cpu) {
  if (!cpu.online) return "offline";
  if (!cpu.vcpu.empty()) return clipped(cpu.vcpu, kCpuColumns);
  if (!cpu.owners.empty()) {
    const MapOwner& owner = map.owners[cpu.owners.front()];
    if (!owner.reported) return "not here yet";
    return owner.vm ? "no vCPU" : "no VM";
  }
  return cpu.shared ? "shared pool" : "reserved";
}

std::string kind_of(const MapCpu& cpu) {
  std::string kind = cpu.owners.empty() ? "cpu" : "cpu owned";
  if (!cpu.online) kind += " offline";
  return cpu.owners.size() > 1 ? kind + " conflict" : kind;
}

std::string details_of(const NodeMap& map, const MapCpu& cpu) {
  std::string text = fmt::format("CPU {}", cpu.cpu);
  for (const std::size_t owner : cpu.owners) text += "; owned by " + map.owners[owner].name;
  if (!cpu.vcpu.empty()) text += "; " + cpu.vcpu;
  if (cpu.interrupted.any()) text += "; others: " + messages::interruptions_text(cpu.interrupted);
  return cpu.threads.empty() ? text : text + "; threads that may run here: " + cpu.threads;
}

/// As wide as the CPU at 10000 interruptions a second, half of that at 100.
std::string heat_bar(const MapCpu& cpu) {
  constexpr double kFull = 4;
  const double part = std::min(std::log10(1 + cpu.heat()) / kFull, 1.0);
  const int width = static_cast<int>(part * kCpuWidth);
  if (width == 0) return {};
  return fmt::format("<rect class=\"heat\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                     kCpuHeight - kHeat, width, kHeat);
}

Piece draw_cpu(const NodeMap& map, const MapCpu& cpu) {
  std::string letters;
  for (const std::size_t owner : cpu.owners) letters += map.owners[owner].letter;
  if (cpu.owners.size() > 1) letters += '!';
  const std::string fill = cpu.owners.empty() ? "" : filled(colour_of(cpu.owners.front()));
  Piece piece{.svg = {}, .width = kCpuWidth, .height = kCpuHeight};
  piece.svg = fmt::format("<g class=\"{}\" data-cpu=\"{}\"><title>{}</title>\n", kind_of(cpu),
                          cpu.cpu, escaped(details_of(map, cpu)));
  piece.svg +=
      fmt::format("<rect width=\"{}\" height=\"{}\" rx=\"3\"{}/>\n", kCpuWidth, kCpuHeight, fill);
  piece.svg += text_at(kGap, 17, "number", fmt::format("CPU {}", cpu.cpu));
  if (!letters.empty()) piece.svg += text_at(kCpuWidth - kGap, 19, "sign", letters);
  piece.svg += text_at(kGap, 36, "use", use_of(map, cpu));
  if (cpu.thread_count > 0) {
    piece.svg += text_at(kGap, 53, "threads", messages::counted(cpu.thread_count, "thread"));
  }
  piece.svg += heat_bar(cpu) + "</g>\n";
  return piece;
}

Piece draw_cores(const NodeMap& map, const NodeMap::Cores& cores) {
  std::vector<Piece> pieces;
  for (const auto& [id, cpus] : cores) {
    std::vector<Piece> threads;
    for (const MapCpu& cpu : cpus) threads.push_back(draw_cpu(map, cpu));
    pieces.push_back(framed(fmt::format("core {}", id), flow(threads, 0)));
  }
  return flow(pieces, kCoresWide);
}

Piece draw_sockets(const NodeMap& map) {
  std::vector<Piece> sockets;
  for (const auto& [socket, nodes] : map.sockets) {
    std::vector<Piece> in_socket;
    for (const auto& [node, caches] : nodes) {
      std::vector<Piece> in_node;
      for (const auto& [cache, cores] : caches) {
        in_node.push_back(framed(fmt::format("L3 cache {}", cache), draw_cores(map, cores)));
      }
      in_socket.push_back(framed(fmt::format("NUMA node {}", node), flow(in_node, kCachesWide)));
    }
    sockets.push_back(framed(fmt::format("socket {}", socket), flow(in_socket, kNodesWide)));
  }
  return flow(sockets, kSocketsWide);
}

/// One entry of the legend: a box with the letter, and lines of text. `fill` as of `filled`; empty:
/// the colour of a CPU without an owner.
Piece draw_entry(const std::string& sign, const std::string& fill, const std::string& text) {
  Piece piece;
  piece.svg = fmt::format("<g class=\"{}\"><rect width=\"40\" height=\"{}\" rx=\"3\"{}/>\n{}</g>\n",
                          fill.empty() ? "cpu" : "cpu owned", kRow - 4, fill,
                          text_at(34, 16, "sign", sign));
  std::string lines = wrapped(text, kLegendColumns, 0) + '\n';
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    const std::string line = clipped(lines.substr(0, end), kLegendColumns);
    piece.svg += text_at(50, piece.height + 15, "entry", line);
    piece.width = std::max(piece.width, 50 + kLetter * static_cast<int>(line.size()));
    piece.height += kRow - 4;
    lines.erase(0, end + 1);
  }
  piece.height = std::max(piece.height, kRow - 4);
  return piece;
}

Piece draw_legend(const NodeMap& map) {
  std::vector<Piece> entries;
  const std::string shared = map.shared_pool.empty() ? "no CPU" : "CPUs " + map.shared_pool;
  entries.push_back(draw_entry("", "", "shared pool: " + shared));
  for (std::size_t i = 0; i < map.owners.size(); ++i) {
    const MapOwner& owner = map.owners[i];
    std::string text =
        messages::cpus_text(owner.cpus) + ": " + owner.name + std::string(owner_kind(owner));
    if (!owner.vcpus.empty()) text += "; " + owner.vcpus;
    if (!owner.isolation.empty()) text += "; " + owner.isolation;
    if (!owner.grade.empty()) text += "; " + owner.grade;
    entries.push_back(draw_entry(owner.letter, filled(colour_of(i)), text));
  }
  return flow(entries, 0);
}

std::string headline(const NodeMap& map) {
  return messages::counted(map.cpu_count(), "CPU") + ", " +
         messages::counted(static_cast<long long>(map.owners.size()), "owner") +
         " of exclusive CPUs" + (map.observe ? "; vCPUs are only planned (mode observe)" : "");
}

}  // namespace

std::string draw_svg(const NodeMap& map) {
  const std::string title = headline(map);
  const Piece heading{text_at(0, 15, "head", title), kBigLetter * static_cast<int>(title.size()),
                      kRow};
  const Piece all = flow({heading, draw_sockets(map), draw_legend(map)}, 0);
  const int width = all.width + 2 * kGap, height = all.height + 2 * kGap;
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<rect class=\"paper\" width=\"{0}\" height=\"{1}\"/>\n{4}</svg>\n",
      width, height, escaped(title), kStyle, moved(all, kGap, kGap));
}

}  // namespace ka::cli
