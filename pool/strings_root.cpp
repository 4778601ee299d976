// Roots of string indexes.
#include <pmlab/base/error.hpp>
#include <pmlab/bench/any_medium.hpp>
#include <pmlab/pool/strings_root.hpp>
#include <pmlab/strings/string_index.hpp>

namespace pmlab::pool {
namespace {

constexpr std::string_view layout_prefix = "strings_";
constexpr std::string_view name_suffix = ":s";

template <class Words, class Values>
strings_report report_on(bench::any_index& words, std::string_view name, bool checks) {
  bench::attached_medium medium(words.medium());
  auto index = strings::string_index<bench::attached_medium, Words, Values>::open(
      medium, name, [&words] { return Words::open(words); });
  strings_report report;
  if (checks) report.found = index.check();
  if (report.found.ok()) report.shape = index.stats();
  return report;
}

template <class Words>
strings_report report_on(bench::any_index& words, std::string_view name, std::string_view values, bool checks) {
  if (values == strings::word_values::name) return report_on<Words, strings::word_values>(words, name, checks);
  if (values == strings::blob_values::name) return report_on<Words, strings::blob_values>(words, name, checks);
  throw error("this build has no strings with values '" + std::string(values) + "'",
              "use the release of pmlab that wrote them");
}

}  // namespace

std::optional<std::string> words_root_of(std::string_view name, std::string_view layout) {
  if (!layout.starts_with(layout_prefix) || !name.ends_with(name_suffix)) return std::nullopt;
  return std::string(name.substr(0, name.size() - name_suffix.size()));
}

strings_report report_on_strings(bench::any_index& words, bool words_are_ordered, std::string_view name,
                                 std::string_view layout, bool checks) {
  const std::string_view form = layout.substr(layout_prefix.size());
  const std::size_t underscore = form.find('_');
  const std::string_view kind = form.substr(0, underscore);
  const std::string_view values = underscore == std::string_view::npos ? "" : form.substr(underscore + 1);
  if (kind != (words_are_ordered ? "digital" : "hashed"))
    throw error("strings of layout " + std::string(layout) + " are over another kind of index than root '" +
                    std::string(name) + "' is of",
                "restore the pool from a copy");
  return words_are_ordered ? report_on<bench::attached_ordered_index>(words, name, values, checks)
                           : report_on<bench::attached_index>(words, name, values, checks);
}

}  // namespace pmlab::pool
