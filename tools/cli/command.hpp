// What main knows of a subcommand.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pmlab::cli {

// Exit statuses of the program.
inline constexpr int success = 0;
inline constexpr int failure = 1;          // found while working: wrong answers, a pool that is full
inline constexpr int bad_input = 2;        // nothing was done: the options do not make sense, a path is missing
inline constexpr int invalid_figures = 3;  // measured, but some figures are not valid
inline constexpr int not_complete = 3;     // searched, but not to the end

struct command {
  CLI::App* options = nullptr;
  // Does the work and returns the exit status; called after all options were read. Throws pmlab::error for bad input.
  std::function<int()> run;
};

// The command line as the user wrote it, for the record.
using arguments = std::vector<std::string>;

// Adds an option that takes any text: texts_of(app)("--name", target, "VALUE: its meaning").
class text_options {
 public:
  explicit text_options(CLI::App& app) : app_(app) {}
  void operator()(const std::string& name, std::string& target, const std::string& what) const;

 private:
  CLI::App& app_;
};
[[nodiscard]] inline text_options texts_of(CLI::App& app) { return text_options(app); }

// Adds an option whose text is understood as soon as it is read: parsed_texts_of(app)("--name", "default",
// "VALUE: its meaning", read). The default is read first, unless it is empty. `read` throws pmlab::error for invalid
// text.
class parsed_text_options {
 public:
  explicit parsed_text_options(CLI::App& app) : app_(app) {}
  CLI::Option* operator()(const std::string& name, const std::string& otherwise, const std::string& what,
                          const std::function<void(const std::string&)>& read) const;
  // For an option with one value: target = read(text, name), or read(text). `target` outlives `app`'s parsing.
  template <class Target, class Read>
  CLI::Option* operator()(const std::string& name, const std::string& otherwise, const std::string& what,
                          Target& target, Read read) const {
    return (*this)(name, otherwise, what, [&target, read, name](const std::string& text) {
      if constexpr (std::invocable<Read, const std::string&, const std::string&>)
        target = read(text, name);
      else
        target = read(text);
    });
  }

 private:
  CLI::App& app_;
};
[[nodiscard]] inline parsed_text_options parsed_texts_of(CLI::App& app) { return parsed_text_options(app); }

// Readers of values, as parsed_texts_of takes them. Each throws pmlab::error.

// A number from `least` to `most`.
[[nodiscard]] std::uint32_t count_within(const std::string& text, const std::string& option, std::uint64_t least,
                                         std::uint64_t most);
[[nodiscard]] inline auto within(std::uint64_t least, std::uint64_t most) {
  return [=](const std::string& text, const std::string& option) { return count_within(text, option, least, most); };
}
// A number from 1 to `most`.
[[nodiscard]] inline auto up_to(std::uint64_t most) { return within(1, most); }
// A number from 1 on.
[[nodiscard]] std::uint64_t count_from_1(const std::string& text, const std::string& option);
// A number from 0 on.
[[nodiscard]] std::uint64_t count_from_0(const std::string& text, const std::string& option);
// Any text.
[[nodiscard]] inline std::string as_written(const std::string& text) { return text; }

// Throws pmlab::error for any other word than these two.
[[nodiscard]] bool on_or_off(const std::string& text, const std::string& option);

// The names of --index: "cceh,cache(cceh,mode=adaptive)" are two, because commas within brackets separate nothing.
// Throws pmlab::error: a bracket has no partner; a name is there twice.
[[nodiscard]] std::vector<std::string> index_names(const std::vector<std::string>& lists);

// The numbers of --threads or --hosts: "1,2,8-10" is 1, 2, 8, 9, 10. Throws pmlab::error: no number, 0, a range that
// ends before it begins, more than 1024, a number twice.
[[nodiscard]] std::vector<unsigned> numbers_of(const std::string& list, const std::string& option);

[[nodiscard]] command add_list(CLI::App& program);
[[nodiscard]] command add_bench(CLI::App& program, const arguments& given);
[[nodiscard]] command add_microbench(CLI::App& program, const arguments& given);
[[nodiscard]] command add_calibrate(CLI::App& program, const arguments& given);
[[nodiscard]] command add_pod(CLI::App& program);
[[nodiscard]] command add_pool(CLI::App& program);
[[nodiscard]] command add_stores(CLI::App& program, const arguments& given);
[[nodiscard]] command add_verify(CLI::App& program, const arguments& given);

}  // namespace pmlab::cli
