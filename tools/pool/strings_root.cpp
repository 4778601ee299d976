// Roots of string indexes.
#include "tools/pool/strings_root.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/erased/any_medium.hpp>
#include <pmlab/strings/roots.hpp>
#include <pmlab/strings/string_index.hpp>
#include <pmlab/strings/values.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace pmlab::pool {
namespace {

// Calls work(index) with the string index, opened.
template <class Words, class Values, class Work>
auto open_with(const string_root& root, Work&& work) {
  erased::attached_medium medium(root.words.medium());
  auto index = strings::string_index<erased::attached_medium, Words, Values>::open(
      medium, root.name, [&root] { return Words::open(root.words); });
  return work(index);
}
template <class Words, class Work>
auto open_with(const string_root& root, Work&& work) {
  const std::string& values = root.kind.values;
  if (values == strings::word_values::name) return open_with<Words, strings::word_values>(root, work);
  if (values == strings::blob_values::name) return open_with<Words, strings::blob_values>(root, work);
  throw error("this build has no strings with values '" + values + "'", "write words or blobs");
}
template <class Work>
auto open_with(const string_root& root, Work&& work) {
  return erased::with_attached(root.kind.form,
                               [&]<class Words>(std::type_identity<Words>) { return open_with<Words>(root, work); });
}

// The form of strings over this index whose layout has this word, if they can have it.
std::optional<indexes::string_form> form_named(std::string_view word, const bench::index_description& index) {
  using indexes::string_form;
  if (word == strings::hashed_words && !index.ordered) return string_form::hashes;
  if (word == strings::trie_words && index.ordered) return string_form::trie;
  if (word == strings::tree_words && index.string_form == string_form::tree) return string_form::tree;
  return std::nullopt;
}

std::string bytes_of(std::uint64_t word) { return bytes_of_word(word); }
std::string bytes_of(std::string_view blob) { return std::string(blob); }

}  // namespace

std::optional<std::string> words_root_of(std::string_view name, std::string_view layout) {
  if (!layout.starts_with(strings::layout_prefix) || !name.ends_with(strings::state_suffix)) return std::nullopt;
  return std::string(name.substr(0, name.size() - strings::state_suffix.size()));
}

strings_kind kind_of_strings(std::string_view layout, const bench::index_description& words, std::string_view name) {
  const std::string_view kind = layout.substr(strings::layout_prefix.size());
  const std::size_t underscore = std::min(kind.find('_'), kind.size());
  const std::optional<indexes::string_form> form = form_named(kind.substr(0, underscore), words);
  if (!form)
    throw error("strings of layout " + std::string(layout) + " are over another kind of index than root '" +
                    std::string(name) + "' is of",
                "restore the pool from a copy");
  return {*form, std::string(kind.substr(std::min(underscore + 1, kind.size())))};
}

index_report report_on_strings(const string_root& root, bool checks) {
  return open_with(root, [checks](auto& index) { return report_on_index(index, checks); });
}

std::string bytes_of_word(std::uint64_t word) {
  std::string bytes(sizeof word, '\0');
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

std::uint64_t word_of_bytes(std::string_view bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), std::min(sizeof word, bytes.size()));
  return word;
}

string_entries entries_of_strings(const string_root& root) {
  string_entries entries = open_with(root, [](auto& index) {
    string_entries all;
    index.for_each([&](std::string_view key, const auto& value) { all.emplace_back(key, bytes_of(value)); });
    return all;
  });
  std::sort(entries.begin(), entries.end());
  return entries;
}

void fill_strings(const string_root& root, const string_entries& entries) {
  open_with(root, [&]<class Index>(Index& index) {
    for (const auto& [key, value] : entries) {
      indexes::outcome done{};
      if constexpr (std::is_same_v<typename Index::value_type, std::uint64_t>)
        done = index.upsert(key, word_of_bytes(value));
      else
        done = index.upsert(key, value);
      if (done == indexes::outcome::full)
        throw error("the pool is full before the last of the " + std::to_string(entries.size()) +
                        " entries of strings '" + std::string(root.name) + "'",
                    "give a larger --size");
    }
    return 0;
  });
}

}  // namespace pmlab::pool
