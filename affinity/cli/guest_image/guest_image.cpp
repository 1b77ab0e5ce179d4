// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/guest_image/guest_image.hpp"

#include <fmt/core.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <filesystem>

#include "affinity/cli/kata/guest_agent.hpp"
#include "affinity/cli/kata/kata_config.hpp"
#include "base/files.hpp"
#include "guest-agent/image/drop_in.hpp"
#include "guest-agent/image/image.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;

/// The new image, and the drop-in that lets Kata use it.
struct Made {
  std::string image;
  std::string kind;
  std::string agent;
  std::string verity_params;
  std::string drop_in;
  std::string written_to;  ///< empty: the drop-in is only shown
};

/// --agent, or the one that the node's package has for guests.
Result<fs::path> agent_of(const GuestImageMaking& options) {
  if (!options.agent.empty()) return fs::path(options.agent);
  auto installed = find_guest_agent();
  if (installed) return installed;
  return base::fail(ErrorCode::kInvalid, installed.error().message + ", or use --agent FILE");
}

/// The one table [hypervisor.NAME] that Kata's configuration has.
std::string hypervisor_of(const config::Entries& entries) {
  for (const auto& [path, entry] : entries) {
    if (path.size() == 3 && path[0] == "hypervisor" && path[2] == "kernel") return path[1];
  }
  return "qemu";
}

Result<image::KataSettings> read_kata(const std::string& file) {
  image::KataSettings kata;
  if (file.empty()) return kata;
  const auto entries = read_merged(file);
  if (!entries) return unexpected(entries.error());
  kata.hypervisor = hypervisor_of(*entries);
  const auto text = [&](const char* key) {
    return text_at(*entries, {"hypervisor", kata.hypervisor, key});
  };
  kata.kernel_params = text("kernel_params");
  kata.kernel_verity_params = text("kernel_verity_params");
  kata.guest_hook_path = text("guest_hook_path");
  return kata;
}

Result<void> write_drop_in(const fs::path& file, const std::string& text) {
  const auto present = base::read_regular_file(file);
  if (present && !image::is_drop_in(*present)) {
    return base::fail(ErrorCode::kConflict,
                      file.native() + " exists and was not written by guest-image");
  }
  std::error_code wrong;
  fs::create_directories(file.parent_path(), wrong);
  if (wrong) return base::fail_errno(wrong.value(), file.parent_path().native());
  return base::write_atomically(file, text, 0644);
}

/// Writes or shows how Kata is to use it.
Result<Made> finish(const GuestImageMaking& options, const image::KataSettings& kata,
                    const image::Report& report, const std::string& verity_params) {
  const image::Use use{report.kind, fs::absolute(options.made).native(), verity_params};
  auto text = image::drop_in(kata, use);
  if (!text) return unexpected(text.error());
  Made made{options.made,     image::kind_name(report.kind),
            report.agent,     verity_params,
            std::move(*text), {}};
  if (options.kata_config.empty()) return made;
  const fs::path file = fs::path(options.kata_config).parent_path() / image::kDropInName;
  if (auto written = write_drop_in(file, made.drop_in); !written) {
    return unexpected(written.error());
  }
  made.written_to = file.native();
  return made;
}

boost::json::object to_json(const Made& made) {
  return {{"image", made.image},     {"kind", made.kind},
          {"agent", made.agent},     {"verity_params", made.verity_params},
          {"drop_in", made.drop_in}, {"written_to", made.written_to}};
}

std::string describe(const Made& made) {
  const std::string where =
      made.written_to.empty()
          ? std::string("To use it, put this drop-in beside Kata's configuration.toml, as ") +
                image::kDropInName
          : "New sandboxes use it, by " + made.written_to;
  return fmt::format("{}: {} with kata-affinity-agent {}\n{}:\n\n{}", made.image, made.kind,
                     made.agent, where, made.drop_in);
}

Exit show(const Result<Made>& made, Output& output) {
  if (!made) return output.fail(made.error());
  output.show(to_json(*made), [&] { return describe(*made); });
  return Exit::kDone;
}

Result<Made> make(const GuestImageAddOptions& options) {
  const auto kata = read_kata(options.kata_config);
  if (!kata) return unexpected(kata.error());
  const auto agent = agent_of(options);
  if (!agent) return unexpected(agent.error());
  const auto report = image::add_agent(options.image, options.made, *agent);
  if (!report) return unexpected(report.error());
  return finish(options, *kata, *report, {});
}

Result<Made> make(const GuestImageExtensionOptions& options) {
  const auto kata = read_kata(options.kata_config);
  if (!kata) return unexpected(kata.error());
  const auto agent = agent_of(options);
  if (!agent) return unexpected(agent.error());
  const auto parameters = image::make_extension(options.made, *agent, options.measured);
  if (!parameters) return unexpected(parameters.error());
  const auto report = image::check_image(options.made);
  if (!report) return unexpected(report.error());
  return finish(options, *kata, *report, *parameters);
}

/// A tool that is missing is no daemon that cannot be reached.
Result<Made> without_daemon(Result<Made> made) {
  if (!made && made.error().code == ErrorCode::kUnavailable) {
    made.error().code = ErrorCode::kInvalid;
  }
  return made;
}

}  // namespace

Exit run(const GuestImageCheckOptions& options, Output& output) {
  auto report = image::check_image(options.image);
  if (!report) {
    report.error().code = ErrorCode::kInvalid;
    return output.fail(report.error());
  }
  const boost::json::object document{{"image", options.image},
                                     {"kind", image::kind_name(report->kind)},
                                     {"agent", report->agent},
                                     {"measured", report->measured}};
  output.show(document, [&] {
    return fmt::format(
        "{}: {}{}, {}\n", options.image, image::kind_name(report->kind),
        report->measured ? " (dm-verity)" : "",
        report->agent.empty() ? "without the agent" : "with kata-affinity-agent " + report->agent);
  });
  return report->agent.empty() ? Exit::kNo : Exit::kDone;
}

Exit run(const GuestImageAddOptions& options, Output& output) {
  return show(without_daemon(make(options)), output);
}

Exit run(const GuestImageExtensionOptions& options, Output& output) {
  return show(without_daemon(make(options)), output);
}

}  // namespace ka::cli
