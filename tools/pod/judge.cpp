// The judgement of a round of processes.
#include "tools/pod/judge.hpp"
#include "checker/verify/history_model.hpp"

#include <algorithm>
#include <tuple>

namespace pmlab::pods {
namespace {

struct event {
  enum class kind : std::uint8_t { call, back, death };
  std::uint64_t when;
  kind what;
  unsigned process;
  const operation_record* record;
};

// An index that is full has changed nothing, and its answer leaves the key as it was.
bool counts(const operation_record& r) {
  return r.returned.load(std::memory_order_acquire) == 0 || r.got.changed != indexes::outcome::full;
}

std::vector<event> events_of(const operation_log& log, const std::vector<std::uint64_t>& died) {
  std::vector<event> all;
  for (unsigned p = 0; p < log.processes(); ++p) {
    const std::uint64_t begun = log.process(p).begun.load(std::memory_order_acquire);
    for (const operation_record& r : log.records(p).first(static_cast<std::size_t>(begun))) {
      if (!counts(r)) continue;
      all.push_back({r.called, event::kind::call, p, &r});
      if (const std::uint64_t returned = r.returned.load(std::memory_order_acquire); returned != 0)
        all.push_back({returned, event::kind::back, p, &r});
    }
    if (died[p] != 0) all.push_back({died[p], event::kind::death, p, nullptr});
  }
  // Calls come first where the moments are equal, so that as much as possible may overlap.
  std::stable_sort(all.begin(), all.end(),
                   [](const event& a, const event& b) { return std::tie(a.when, a.what) < std::tie(b.when, b.what); });
  return all;
}

}  // namespace

std::string judge(std::vector<std::uint64_t> keys, const std::vector<indexes::entry>& before, const operation_log& log,
                  const std::vector<std::uint64_t>& died, const std::vector<indexes::entry>& found) {
  std::sort(keys.begin(), keys.end());
  verify::history_model model(std::move(keys));
  for (const indexes::entry& e : before) model.there_before(e);
  for (const event& e : events_of(log, died)) switch (e.what) {
      case event::kind::call: {
        const bool is_answered = e.record->returned.load(std::memory_order_acquire) != 0;
        model.called(e.process, e.record->what, is_answered ? &e.record->got : nullptr);
        break;
      }
      case event::kind::back:
        if (std::string wrong = model.returned(e.process, e.record->what, e.record->got); !wrong.empty()) return wrong;
        break;
      case event::kind::death: model.died(e.process); break;
    }
  model.settled(found);
  return model.judge(found, false);
}

}  // namespace pmlab::pods
