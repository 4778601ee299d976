// Reading the fields of a profile from TOML: the part that profiles of memories and of drives share.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/media/persistence_domain.hpp>
#include "bench/support/find_text.hpp"
#include "bench/support/read_again.hpp"
#include "bench/support/toml_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <toml++/toml.h>

namespace pmlab::devices {

// One key of a profile file, and the member of `Profile` that it fills.
template <class Profile>
struct field {
  using member = std::variant<double Profile::*, std::uint64_t Profile::*, bool Profile::*, std::string Profile::*,
                              media::persistence_domain Profile::*>;

  std::string_view key;
  member where;
  double least = 0;
  double most = 1e9;
  bool is_time = false;      // scaled with the device
  bool may_be_left = false;  // out of a file: the member stays as it is
};

inline constexpr double no_limit = 1e15;
inline constexpr double most_time_ns = 1e9;

template <class Profile>
constexpr field<Profile> time_field(std::string_view key, double Profile::*where) {
  return {key, where, 0, most_time_ns, true};
}

// A key that files may leave out.
template <class Profile>
constexpr field<Profile> optional_time_field(std::string_view key, double Profile::*where) {
  return {key, where, 0, most_time_ns, true, true};
}

[[noreturn]] inline void refuse(const std::string& place, std::string_view key, const std::string& why,
                                const std::string& remedy) {
  throw error(place + ": key '" + std::string(key) + "' " + why, remedy);
}

inline std::string in_words(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

inline std::string joined(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

template <class Profile>
void check_number(double value, const field<Profile>& f, const std::string& place) {
  if (std::isnan(value) || value < 0)
    refuse(place, f.key, "is negative or no number: " + in_words(value), "give a value of 0 or more");
  if (value < f.least || value > f.most)
    refuse(place, f.key, "is out of range: " + in_words(value),
           "give a value from " + in_words(f.least) + " to " + in_words(f.most));
}

template <class Profile>
void assign(Profile& profile, const field<Profile>& f, const toml::node& node, const std::string& place) {
  if (const auto* text = std::get_if<std::string Profile::*>(&f.where)) {
    const auto value = node.value_exact<std::string>();
    if (!value) refuse(place, f.key, "is not a string", "write it in quotes");
    profile.*(*text) = *value;
  } else if (const auto* domain = std::get_if<media::persistence_domain Profile::*>(&f.where)) {
    const auto name = node.value_exact<std::string>();
    const auto value = name ? media::persistence_domain_of(*name) : std::nullopt;
    if (!value)
      refuse(place, f.key, name ? "is no persistence domain: \"" + *name + '"' : std::string("is not a string"),
             "give one of " + joined(media::persistence_domain_names) + ", in quotes");
    profile.*(*domain) = *value;
  } else if (const auto* flag = std::get_if<bool Profile::*>(&f.where)) {
    const auto value = node.value_exact<bool>();
    if (!value) refuse(place, f.key, "is neither true nor false", "write true or false");
    profile.*(*flag) = *value;
  } else {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value) refuse(place, f.key, "is not a number", "write a number, without quotes or unit");
    check_number(*value, f, place);
    if (const auto* number = std::get_if<double Profile::*>(&f.where)) {
      profile.*(*number) = *value;
    } else {
      if (*value != std::floor(*value)) refuse(place, f.key, "is not a whole number", "write a whole number");
      profile.*std::get<std::uint64_t Profile::*>(f.where) = static_cast<std::uint64_t>(*value);
    }
  }
}

// Reads all `fields` from `text`. `file` names it in errors; the profile takes the file's stem as its name. Throws
// pmlab::error that names file, line and key.
template <class Profile>
Profile parse_fields(std::string_view text, std::string_view file, std::span<const field<Profile>> fields,
                     const std::string& folder) {
  const toml::table table = bench::parse_toml(text, file);
  std::vector<std::string_view> keys;
  keys.reserve(fields.size());
  for (const field<Profile>& f : fields) keys.push_back(f.key);
  Profile profile;
  profile.name = std::filesystem::path(file).stem().string();
  std::vector<std::string_view> missing;
  for (const field<Profile>& f : fields)
    if (!f.may_be_left) missing.push_back(f.key);
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    const std::string place = bench::place_of(file, key.source());
    const auto f =
        std::find_if(fields.begin(), fields.end(), [name](const field<Profile>& one) { return one.key == name; });
    if (f == fields.end()) refuse(place, name, "is not known", "did you mean '" + nearest(name, keys) + "'?");
    assign(profile, *f, node, place);
    std::erase(missing, f->key);
  }
  if (!missing.empty())
    throw error(std::string(file) + ": missing key: " + joined(missing), "copy a file of " + folder + " and edit that");
  return profile;
}

// The profile of that name among `builtins`, or in the file of that path, as parse(text, name of the file) returns it.
// Errors call a profile `kind` and its file `file`. Throws pmlab::error.
template <class Parse>
auto load_profile(std::string_view name_or_path, std::span<const named_text> builtins, const std::string& kind,
                  const std::string& file, Parse&& parse) {
  refuse_pipe(std::string(name_or_path), file, "it is read more than once");
  if (const auto found = find_text(name_or_path, builtins, file)) return parse(found->text, found->file);
  const std::vector<std::string_view> names = names_of(builtins);
  throw error("unknown " + kind + " '" + std::string(name_or_path) + "'",
              "did you mean '" + nearest(name_or_path, names) + "'? Known: " + joined(names) +
                  "; or give the path of a .toml file");
}

}  // namespace pmlab::devices
