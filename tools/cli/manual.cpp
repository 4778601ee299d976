// `pmlab man`: the manual page, in roff.
#include "tools/cli/completion.hpp"
#include "tools/cli/offered.hpp"
#include "tools/cli/python.hpp"
#include "bench/support/build_info.hpp"

#include <cctype>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace pmlab::cli {
namespace {

// Text in which roff sees no command: backslashes doubled, dashes as they are typed, no dot or quote at a line's start.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool starts_line = out.empty() || out.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\' || c == '-') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return out;
}

std::string options_text(const offered_command& c) {
  std::string text;
  for (const offered_option& o : c.options) {
    text += ".TP\n";
    if (o.is_argument)
      text += fmt::format("\\fI{}\\fR\n", roff(o.name));
    else
      text += fmt::format("\\fB{}\\fR{}\n", roff(o.name), o.value.empty() ? "" : " \\fI" + roff(o.value) + "\\fR");
    text += roff(o.what.empty() ? o.value : o.what) + '\n';
  }
  return text;
}

std::string manual_of(const CLI::App& program) {
  std::string text = fmt::format(
      ".\\\" Made by `pmlab man` from the command line itself.\n.TH PMLAB 1 \"\" \"pmlab {}\" \"User Commands\"\n"
      ".SH NAME\npmlab \\- {}\n.SH SYNOPSIS\n\\fBpmlab\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n",
      roff(bench::build_version()), roff(program.get_description()));
  text += ".SH OPTIONS\n";
  const std::vector<offered_command> commands = offered_by(program);
  text += options_text(commands.front());
  text += ".SH COMMANDS\n";
  for (const offered_command& c : commands) {
    if (c.name.empty()) continue;
    text += fmt::format(".SS pmlab {}\n{}.\n", roff(c.name), roff(c.what));
    text += options_text(c);
    if (!c.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(c.footer));
  }
  return text +
         ".SH EXIT STATUS\n"
         ".TP\n0\nDone.\n"
         ".TP\n1\nFound while working: wrong answers, a violation, a pool that is full or not sound.\n"
         ".TP\n2\nNothing was done: the options do not make sense, or a path is missing.\n"
         ".TP\n3\nMeasured, but some rows are INVALID.\n"
         ".SH ENVIRONMENT\n"
         ".TP\n\\fBNO_COLOR\\fR\nNo colours, if it is set. There are none in files and pipes.\n"
         ".TP\n\\fBPMLAB_PYTHON\\fR\nThe Python that runs \\fBrun\\fR, \\fBclaims\\fR and \\fBreport\\fR.\n";
}

}  // namespace

command add_manual(CLI::App& program) {
  CLI::App* const app = program.add_subcommand("man", "Prints the manual page");
  app->footer("  pmlab man | man -l -");
  return {app, [&program] {
            describe_python_commands(program);
            fmt::print("{}", manual_of(program));
            return success;
          }};
}

}  // namespace pmlab::cli
