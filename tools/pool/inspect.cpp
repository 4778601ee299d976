// The contents of a pool, and its check.
#include "tools/pool/inspect.hpp"
#include "tools/pool/child.hpp"
#include "tools/pool/strings_root.hpp"
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/erased/any_index.hpp>
#include <pmlab/hybrid/roots.hpp>
#include <pmlab/media/pool_header.hpp>
#include <pmlab/strings/roots.hpp>
#include "bench/support/json_text.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace pmlab::pool {
namespace {

using nlohmann::json;

// Messages between child and parent. Names are printable; bytes of other text that are no UTF-8 are replaced.
std::string packed(const json& document) { return json_text(document, -1); }

const bench::index_description* index_of(std::string_view layout) {
  const std::vector<const bench::index_description*> all = bench::all_indexes();
  const auto place = std::find_if(all.begin(), all.end(),
                                  [&](const bench::index_description* d) { return d->open_root && d->name == layout; });
  return place == all.end() ? nullptr : *place;
}

root root_of(const json& said, std::size_t position) {
  const auto name = [&](const char* key) { return name_of_printable(said.at(key).get<std::string>()); };
  root r{position, {name("name"), name("layout"), said.at("version"), said.at("made")}};
  const bench::index_description* const index = index_of(r.facts.layout);
  if (index == nullptr)
    r.problem = fmt::format("this build has no index of layout '{}'", printable(r.facts.layout));
  else if (index->layout_version != r.facts.version)
    r.problem = fmt::format("it has version {} of layout {}, and this build reads version {}", r.facts.version,
                            r.facts.layout, index->layout_version);
  else
    r.index = index;
  return r;
}

// The one of that name; nullptr: there is none.
template <class Roots>
auto* root_named(Roots& roots, std::string_view name) {
  const auto place = std::find_if(roots.begin(), roots.end(), [&](const root& r) { return r.facts.name == name; });
  return place == roots.end() ? nullptr : &*place;
}

// Connects string keys with their words.
void pair_strings(std::vector<root>& roots) {
  for (root& r : roots) {
    const std::optional<std::string> words = words_root_of(r.facts.name, r.facts.layout);
    if (!words) continue;
    root* const below = root_named(roots, *words);
    if (below == nullptr || below->index == nullptr) {
      r.problem = fmt::format("its words must be in root '{}', which {}", printable(*words),
                              below == nullptr ? "does not exist" : "cannot be read");
      continue;
    }
    r.words = *words;
    r.problem.clear();
    below->strings = r.facts.name;
  }
}

bool holds_types(const media::root_facts& f) {
  return f.name.ends_with(strings::types_suffix) && f.layout.starts_with(strings::typed_layout_prefix);
}

// Connects typed indexes with their types.
void attach_types(std::vector<root>& roots) {
  for (const root& types : roots) {
    if (!holds_types(types.facts)) continue;
    const std::string_view name = types.facts.name;
    if (root* const typed = root_named(roots, name.substr(0, name.size() - strings::types_suffix.size())))
      typed->types = types.facts;
  }
}

// The child's report on the pool as a whole.
std::string facts_of(media::pmem& pool) {
  json roots = json::array();
  for (const media::root_facts& r : pool.roots())
    roots.push_back(
        {{"name", printable(r.name)}, {"layout", printable(r.layout)}, {"version", r.version}, {"made", r.made}});
  const media::usage used = pool.used();
  return packed({{"roots", roots},
                 {"allocated", used.allocated_bytes},
                 {"capacity", used.capacity_bytes},
                 {"survives", pool.survives()},
                 {"device", pool.backed_by() == media::backing::device_dax}});
}

json shape_to_json(const indexes::index_stats& s) {
  return {s.entries, s.nodes, s.depth, s.load_factor, s.medium_bytes, s.dram_bytes};
}

indexes::index_stats shape_from_json(const json& j) {
  return {.entries = j.at(0),
          .nodes = j.at(1),
          .depth = j.at(2),
          .load_factor = j.at(3),
          .medium_bytes = j.at(4),
          .dram_bytes = j.at(5)};
}

index_report report_on_keys(const root& strings, const root& below, erased::any_index& words, bool checks) {
  return report_on_strings({words, kind_of_strings(strings.facts.layout, *below.index, strings.words), strings.words},
                           checks);
}

root_report report_on(const contents& all, const root& r, bool checks, patience each) {
  root_report report{r};
  const root* const below = &words_of(all, r);
  if (below->index == nullptr) {
    report.problem = r.problem;
    return report;
  }
  if (below->is_empty() || !r.facts.made) {
    report.shape.emplace();
    return report;
  }
  try {
    const std::string doing =
        fmt::format("{} root '{}' of pool {}", checks ? "checking" : "opening", printable(r.facts.name), all.path);
    const json said = json::parse(look_at(all.path, doing, each, [&](media::pmem& pool) {
      const std::shared_ptr<erased::any_index> index =
          below->index->open_root(pool, pool.roots().at(below->position).name);
      const index_report own =
          r.words.empty() ? report_on_index(*index, checks) : report_on_keys(r, *below, *index, checks);
      const json shape = own.found.ok() ? shape_to_json(own.shape) : json(nullptr);
      return packed({{"violations", own.found.violations}, {"shape", shape}});
    }));
    report.violations = said.at("violations").get<std::vector<std::string>>();
    if (!said.at("shape").is_null()) report.shape = shape_from_json(said.at("shape"));
  } catch (const error& e) {
    report.problem = e.what();
  }
  return report;
}

std::vector<root_report> reports_on(const contents& all, bool checks, patience each) {
  std::vector<root_report> reports;
  reports.reserve(all.roots.size());
  for (const root& r : all.roots) reports.push_back(report_on(all, r, checks, each));
  return reports;
}

}  // namespace

contents contents_of(const std::string& path, patience each) {
  std::string answer;
  try {
    answer = look_at(path, "opening pool " + path, each, facts_of);
  } catch (const damage& d) {
    throw error(d.problem,
                "libpmemobj's own words in it are damaged, and nothing can be read without them: take a copy "
                "of the pool, if there is one");
  }
  const json said = json::parse(answer);
  contents all{path, said.at("capacity"), said.at("allocated"), said.at("survives"), said.at("device"), {}};
  for (const json& r : said.at("roots")) all.roots.push_back(root_of(r, all.roots.size()));
  pair_strings(all.roots);
  attach_types(all.roots);
  // A typed index is shown as its own root, with keys and values as words; a hybrid index as both of its halves.
  std::erase_if(all.roots,
                [](const root& r) { return holds_types(r.facts) || r.facts.layout == hybrid::replica_layout; });
  return all;
}

const root& words_of(const contents& all, const root& strings) {
  return strings.words.empty() ? strings : *root_named(all.roots, strings.words);
}

std::vector<root> chosen_roots(const contents& all, const std::vector<std::string>& named) {
  std::vector<root> chosen;
  for (const std::string& given : named) {
    // As it is shown; or by its own bytes.
    const std::string name = name_of_printable(given);
    const root* there = root_named(all.roots, name);
    if (there == nullptr) there = root_named(all.roots, given);
    if (there == nullptr) {
      std::vector<std::string_view> names;
      for (const root& r : all.roots) names.emplace_back(r.facts.name);
      throw error(fmt::format("pool {} has no root '{}'", all.path, printable(name)),
                  names.empty() ? "it holds no index at all"
                                : fmt::format("did you mean '{}'? `pmlab pool info` names them",
                                              printable(nearest(name, names))));
    }
    chosen.push_back(*there);
  }
  if (named.empty()) chosen = all.roots;
  std::erase_if(chosen, [](const root& r) { return r.index != nullptr && r.index->kept == bench::keeps::nothing; });
  if (chosen.empty()) throw error(fmt::format("pool {} holds no index", all.path), "name another pool");
  // Words lead to keys, and mean nothing without them: they come with those.
  if (named.empty()) std::erase_if(chosen, [](const root& r) { return !r.strings.empty(); });
  for (const root& r : chosen)
    if (!r.strings.empty())
      throw error(
          fmt::format("root '{}' of pool {} has the words of string keys only", printable(r.facts.name), all.path),
          fmt::format("say --root {}, which is those keys", printable(r.strings)));
  for (const root& r : chosen)
    if (!r.is_readable())
      throw error(fmt::format("root '{}' of pool {} cannot be read: {}", printable(r.facts.name), all.path, r.problem),
                  "use the release of pmlab that wrote it; or select the others by --root NAME, if none of them "
                  "holds words that lead into this one");
  return chosen;
}

std::vector<root_report> shapes_of(const contents& all, patience each) { return reports_on(all, false, each); }
std::vector<root_report> checks_of(const contents& all, patience each) { return reports_on(all, true, each); }
root_report check_of(const contents& all, const root& r, patience each) { return report_on(all, r, true, each); }

void refuse_damaged(const std::string& path, patience each) {
  {
    const descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    const bool is_device = ::fstat(file.get(), &status) == 0 && S_ISCHR(status.st_mode);
    if (!is_device && media::layout_of_pool(file.get()) != media::pmem::pool_layout) return;
  }
  for (const root_report& r : checks_of(contents_of(path, each), each)) {
    if (!r.of.is_readable() || (r.problem.empty() && r.violations.empty())) continue;
    // A problem has a remedy of its own.
    if (!r.problem.empty()) throw error(r.problem, {});
    throw error(
        fmt::format("root '{}' of pool {} is not sound: {}", printable(r.of.facts.name), path, r.violations.front()),
        std::string(damage::remedy));
  }
}

}  // namespace pmlab::pool
