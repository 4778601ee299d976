// A new pool from the readable entries of a damaged one.
#include "tools/pool/repair.hpp"
#include "tools/pool/entries.hpp"
#include "tools/pool/new_pool.hpp"

#include <algorithm>
#include <utility>

namespace pmlab::pool {

std::vector<salvaged_root> repair(const contents& damaged, const std::vector<root>& chosen, const std::string& path,
                                  std::uint64_t bytes, patience each) {
  refuse_what_is_there(path);
  std::vector<salvaged_root> salvaged;
  std::vector<read_entries> kept;
  kept.reserve(chosen.size());  // the result points into it
  std::vector<new_root> made;
  for (const root& r : chosen) {
    root_report before = check_of(damaged, r, each);
    const bool sound = before.problem.empty() && before.violations.empty();
    kept.push_back(entries_of(damaged, r, sound ? reading::opened : reading::salvaged, each));
    const read_entries& read = kept.back();
    const root& below = words_of(damaged, r);
    const string_entries* const texts = read.values.empty() ? nullptr : &read.texts;
    made.push_back({below.facts.name, below.index, read.entries, texts, read.values, below.types});
    salvaged.push_back({std::move(before), read.count(), read.contradictions, read.problem});
  }
  make_pool(path, bytes != 0 ? bytes : std::max(damaged.file_bytes, bytes_for(made)), made);
  return salvaged;
}

}  // namespace pmlab::pool
