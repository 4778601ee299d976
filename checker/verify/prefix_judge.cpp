// Opens the images of a store whose crashes may take the newest changes.
#include "checker/verify/prefix_judge.hpp"

#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/nearly_full.hpp"

#include <utility>
#include <vector>

namespace pmlab::verify {
namespace {

// Above the numbers of a run's own changes.
constexpr std::uint32_t first_number_of_work = 1'000'000;

}  // namespace

prefix_content prefix_judge::contents_of(crash_image& image) const {
  const std::unique_ptr<prefix_target> store = kind_.open_image(image);
  prefix_state state = store->contents(false);
  return {std::move(state), store->sequence()};
}

std::string prefix_judge::judge(crash_image& image, const crash_options& options, splitmix64& random) {
  return judge([&] { return kind_.open_image(image); }, options, random);
}

std::string prefix_judge::judge_on_machine(const crash_options& options, splitmix64& random) {
  counts_steps_ = true;  // this process ends with it
  return judge(kind_.open_simulated, options, random);
}

std::string prefix_judge::judge(const std::function<std::unique_ptr<prefix_target>()>& open,
                                const crash_options& options, splitmix64& random) {
  std::unique_ptr<prefix_target> store = open();
  if (std::string wrong = store->check(); !wrong.empty()) return "check(): " + wrong;
  now_ = store->contents(random.one_in(2));
  if (std::string wrong = history_->judge(now_); !wrong.empty()) return wrong;
  const bool is_long = random.one_in(options.long_work_one_in);
  const std::size_t operations = is_long ? options.long_work / 4 : options.work_after_recovery;
  if (operations == 0) return {};
  std::string wrong =
      options.nearly_full && random.one_in(2) ? fill_again(*store, false) : work_on(*store, operations, random);
  if (wrong.empty() && random.one_in(4)) {
    store.reset();
    store = open();
    if (wrong = compare(*store); !wrong.empty()) wrong = "and opened again, " + wrong;
  }
  return wrong.empty() ? wrong : "after recovery and work, " + wrong;
}

void prefix_judge::recover_on_machine(const std::function<void()>& opened) {
  const std::unique_ptr<prefix_target> store = kind_.open_simulated();
  opened();
}

// The recovered store must remain usable.
std::string prefix_judge::work_on(prefix_target& store, std::size_t operations, splitmix64& random) {
  std::uint32_t number = first_number_of_work;
  for (std::size_t i = 0; i < operations; ++i) {
    if (counts_steps_) simulator::the_machine().allow(simulator::machine::patience);
    const auto key = static_cast<std::uint32_t>(random.below(prefix_keys));
    if (random.one_in(4)) {
      if (const std::uint32_t got = store.get(key); got != now_[key])
        return "get(" + std::to_string(key) + ") returns " + std::to_string(got) + ", and must return " +
               std::to_string(now_[key]);
      continue;
    }
    if (random.one_in(16)) store.compact();
    std::vector<prefix_change> changes{{key, random.one_in(4) ? 0 : ++number}};
    if (random.one_in(4)) changes.push_back({static_cast<std::uint32_t>(random.below(prefix_keys)), ++number});
    if (store.apply(changes) == 0) continue;
    for (const prefix_change& c : changes) now_[c.key] = c.number;
  }
  return compare(store);
}

std::string prefix_judge::fill_again(prefix_target& store, bool watched) {
  now_ = store.contents(false);
  std::uint32_t number = first_large_number + first_number_of_work;
  const auto set = [&](std::size_t key, std::uint32_t to) {
    const prefix_change change{static_cast<std::uint32_t>(key), to};
    if (watched || counts_steps_) simulator::the_machine().allow(simulator::machine::patience);
    if (watched) simulator::the_machine().watch(true);
    const bool done = store.apply({&change, 1}) != 0;
    if (watched) simulator::the_machine().watch(false);
    if (done) now_[key] = to;
    return done;
  };
  const std::string wrong = half_is_written_again(
      prefix_keys, [&](std::size_t key) { return now_[key] != 0; }, [&](std::size_t key) { return set(key, ++number); },
      [&](std::size_t key) { return set(key, 0); });
  return wrong.empty() ? compare(store) : wrong;
}

std::string prefix_judge::compare(prefix_target& store) const {
  if (std::string wrong = store.check(); !wrong.empty()) return "check(): " + wrong;
  const prefix_state found = store.contents(false);
  for (std::size_t k = 0; k < found.size(); ++k)
    if (found[k] != now_[k])
      return "key " + std::to_string(k) + " has " + std::to_string(found[k]) + ", and must have " +
             std::to_string(now_[k]);
  return {};
}

}  // namespace pmlab::verify
