// Opens the images of an index, and judges them.
#include "checker/verify/index_judge.hpp"
#include "checker/verify/crash_image.hpp"
#include "checker/verify/nearly_full.hpp"

#include <algorithm>
#include <utility>

namespace pmlab::verify {
namespace {

// If there are many keys, one in so many is searched for in an image, and one image in so many gets further work. Walks
// see them all.
constexpr std::size_t many_keys = 500;
constexpr std::size_t sample = 8;

std::string wrong_blocks(std::uint64_t held, std::uint64_t allocated) {
  return "the index holds " + std::to_string(held) + " bytes, and " + std::to_string(allocated) +
         " are allocated: leaked, or freed while in use";
}

// The first key in which `found` differs from `expected`, as text; "": none. Both ascend.
std::string difference(std::span<const indexes::entry> expected, std::span<const indexes::entry> found) {
  const auto words = [](const indexes::entry& e) {
    return "key " + std::to_string(e.key) + " with value " + std::to_string(e.value);
  };
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    if (i < expected.size() && i < found.size() && expected[i] == found[i]) continue;
    if (i >= expected.size() || (i < found.size() && found[i].key < expected[i].key)) {
      const bool doubled = i > 0 && found[i - 1].key == found[i].key;
      return words(found[i]) + (doubled ? " is present twice, before with " + std::to_string(found[i - 1].value)
                                        : std::string(" is present, and must not be"));
    }
    if (i >= found.size() || found[i].key > expected[i].key) return words(expected[i]) + " is missing";
    return "key " + std::to_string(found[i].key) + " has value " + std::to_string(found[i].value) + ", and must have " +
           std::to_string(expected[i].value);
  }
  return {};
}

}  // namespace

std::unique_ptr<target> index_judge::open(crash_image& image) const {
  if (kind_.open_image_on_drives == nullptr) return kind_.open_image(image.memory());
  return kind_.open_image_on_drives(image);
}

std::string index_judge::judge(crash_image& image, const crash_options& options, splitmix64& random) {
  options_ = &options;
  random_ = &random;
  const std::unique_ptr<target> index = open(image);
  return judge(*index, &image.memory());
}

std::string index_judge::judge_here(const crash_options& options, splitmix64& random) {
  options_ = &options;
  random_ = &random;
  counts_steps_ = true;  // this process ends with it
  const std::unique_ptr<target> index = kind_.open_recovered();
  index->know_keys(history_->keys());
  return judge(*index, nullptr);
}

std::unique_ptr<target> index_judge::open_on_machine() const {
  return kind_.open_durable_part ? kind_.open_durable_part() : kind_.open_simulated();
}

std::string index_judge::judge_on_machine(const crash_options& options, splitmix64& random) {
  options_ = &options;
  random_ = &random;
  counts_steps_ = true;
  const std::unique_ptr<target> index = open_on_machine();
  return judge(*index, nullptr);
}

std::string index_judge::judge_completely(const crash_options& options, splitmix64 random, const acceptance& accepts) {
  options_ = &options;
  random_ = &random;
  searches_all_ = true;
  const std::unique_ptr<target> index = open_on_machine();
  const auto blocks = [&]() -> std::string {
    const std::uint64_t allocated = simulator::the_machine().memory()->blocks().live_bytes();
    const auto held = index->held_bytes();
    return !held || *held == allocated ? std::string() : wrong_blocks(*held, allocated);
  };
  index->know_keys(history_->keys());
  if (std::string wrong = read_back(*index); !wrong.empty()) return wrong;
  if (std::string wrong = accepts(entries_); !wrong.empty()) return wrong;
  if (std::string wrong = blocks(); !wrong.empty()) return wrong;
  if (std::string wrong = work_on(*index, nullptr); !wrong.empty()) return wrong;
  const std::string wrong = blocks();
  return wrong.empty() ? wrong : "after recovery and work, " + wrong;
}

void index_judge::recover_on_machine(const std::function<void()>& opened) {
  const std::unique_ptr<target> index = open_on_machine();
  opened();
}

std::vector<indexes::entry> index_judge::contents_of(crash_image& image) {
  std::vector<indexes::entry> entries;
  const std::unique_ptr<target> index = open(image);
  index->know_keys(history_->keys());
  index->entries(entries);
  return entries;
}

std::vector<indexes::entry> index_judge::contents_here() {
  std::vector<indexes::entry> entries;
  const std::unique_ptr<target> index = kind_.open_recovered();
  index->know_keys(history_->keys());
  index->entries(entries);
  return entries;
}

std::string index_judge::judge(target& index, image_medium* medium) {
  if (std::string wrong = read_back(index); !wrong.empty()) return wrong;
  if (std::string wrong = history_->judge(entries_); !wrong.empty()) return wrong;
  if (std::string wrong = judge_blocks(index, medium); !wrong.empty()) return wrong;
  if (options_->nearly_full && random_->one_in(16)) {
    const std::string wrong = fill_again(index, false);
    return wrong.empty() ? wrong : "after recovery, " + wrong;
  }
  return sampled() && !random_->one_in(sample) ? std::string() : work_on(index, medium);
}

std::string index_judge::fill_again(target& index, bool watched) {
  const std::vector<std::uint64_t>& keys = history_->keys();
  std::uint64_t value = first_large_value + (std::uint64_t{1} << 32);
  model_.clear();
  index.entries(entries_);
  for (const indexes::entry& e : entries_) model_.emplace_back(e.key, e.value);
  contents now;
  for (const auto& [key, state] : model_) now.emplace(key, *state);
  const auto done = [&](const step& s) {
    begin_operation();
    if (watched) simulator::the_machine().allow(simulator::machine::patience);
    if (watched) simulator::the_machine().watch(true);
    const answer got = index.perform(s);
    if (watched) simulator::the_machine().watch(false);
    if (got.changed == indexes::outcome::full) return false;
    expect(s, now);
    return true;
  };
  const std::string wrong = half_is_written_again(
      keys.size(), [&](std::size_t i) { return now.count(keys[i]) > 0; },
      [&](std::size_t i) {
        return done({action::upsert, keys[i], ++value});
      },
      [&](std::size_t i) {
        return done({action::erase, keys[i], 0});
      });
  if (!wrong.empty()) return wrong;
  model_.clear();
  for (const auto& [key, found] : now) model_.emplace_back(key, found);
  return judge_work(index);
}

bool index_judge::sampled() const { return !searches_all_ && history_->keys().size() > many_keys; }

// Every way of reading must agree: `entries_` is the common result.
std::string index_judge::read_back(target& index) {
  begin_operation();
  if (std::string wrong = index.check_opened(); !wrong.empty()) return "check(): " + wrong;
  index.entries(entries_);
  for (std::size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].key <= entries_[i - 1].key)
      return entries_[i].key == entries_[i - 1].key
                 ? "key " + std::to_string(entries_[i].key) + " is present twice, with values " +
                       std::to_string(entries_[i - 1].value) + " and " + std::to_string(entries_[i].value)
                 : "a walk returns key " + std::to_string(entries_[i].key) + " after key " +
                       std::to_string(entries_[i - 1].key);
  if (kind_.image_is_ordered) {
    begin_operation();
    again_.resize(entries_.size() + 2);
    const std::size_t count = index.scan(0, again_);
    if (std::string wrong = difference(entries_, std::span(again_).first(std::min(count, again_.size())));
        !wrong.empty())
      return "a scan differs from a walk: " + wrong;
  }
  return search_for_all(index);
}

// One key after the other, or many at once.
std::string index_judge::search_for_all(target& index) {
  const std::vector<std::uint64_t>& all = history_->keys();
  std::span<const std::uint64_t> keys = all;
  if (sampled()) {
    searched_.clear();
    for (std::size_t i = random_->below(sample); i < all.size(); i += sample) searched_.push_back(all[i]);
    keys = searched_;
  }
  const bool together = random_->one_in(4);
  found_.assign(keys.size(), std::nullopt);
  if (together) index.find_batch(keys, found_);
  std::size_t at = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    begin_operation();
    while (at < entries_.size() && entries_[at].key < keys[i]) ++at;
    const bool there = at < entries_.size() && entries_[at].key == keys[i];
    const answer got = together ? answer{{}, found_[i]} : index.perform({action::find, keys[i], 0});
    const key_state walked = there ? key_state(entries_[at].value) : std::nullopt;
    if (got.found != walked)
      return std::string(together ? "find_batch returns for key " : "find returns for key ") + std::to_string(keys[i]) +
             ": " + to_string(got) + ", a walk: " + in_words(walked);
  }
  return {};
}

// The recovered index must remain usable: on the run's keys, and in long work on new ones, so that nodes split.
std::string index_judge::work_on(target& index, image_medium* medium) {
  const bool is_long = random_->one_in(options_->long_work_one_in);
  const std::size_t operations = is_long ? options_->long_work : options_->work_after_recovery;
  if (operations == 0) return {};
  model_.clear();
  std::size_t at = 0;
  for (const std::uint64_t key : history_->keys()) {
    while (at < entries_.size() && entries_[at].key < key) ++at;
    model_.emplace_back(key,
                        at < entries_.size() && entries_[at].key == key ? key_state(entries_[at].value) : std::nullopt);
  }
  if (is_long && kind_.loads)
    if (std::string wrong = load_into(index); !wrong.empty()) return wrong;
  // Some go on where there is no space for a while.
  if (medium != nullptr && random_->one_in(8))
    medium->limit(simulator::space_limit(
        {.spare = random_->below(4), .refused = 1 + random_->below(6), .one_in = 1 + random_->below(2)}));
  const std::size_t known = model_.size();
  const std::vector<std::size_t> unfinished = kind_.fills_up ? unfinished_keys() : std::vector<std::size_t>();
  for (std::size_t i = 0; i < operations; ++i) {
    begin_operation();
    const bool is_unfinished = !unfinished.empty() && random_->one_in(2);
    std::size_t which = is_unfinished ? unfinished[random_->below(unfinished.size())] : random_->below(known);
    step s{random_action(*random_, {}), model_[which].first, random_->next()};
    if (kind_.reserves_sentinels && s.what == action::upsert) s.what = action::update;
    s.what = in_place_of(s.what, kind_.missing);
    if (is_long && !is_unfinished && !random_->one_in(4)) {
      // Beside a known key, where no key of the run is.
      const std::uint64_t fresh = model_[which].first ^ (random_->next() >> 20);
      const bool taken = std::any_of(model_.begin(), model_.end(), [&](const auto& m) { return m.first == fresh; });
      if (!taken) {
        which = model_.size();
        model_.emplace_back(fresh, std::nullopt);
        s = {action::insert, fresh, random_->next()};
      }
    }
    const key_state before = model_[which].second;
    const answer expected = expect(s, model_[which].second);
    const std::uint64_t refused = medium == nullptr ? 0 : medium->limit().refusals();
    const answer got = index.perform(s);
    const bool may_be_full = kind_.fills_up || (medium != nullptr && medium->limit().refusals() != refused);
    if (got.changed == indexes::outcome::full && may_be_full)
      model_[which].second = before;
    else if (got != expected)
      return "after recovery, " + to_string(s) + " answers: " + to_string(got) +
             "; it must answer: " + to_string(expected);
  }
  if (std::string wrong = judge_work(index); !wrong.empty()) return "after recovery and work, " + wrong;
  const std::string wrong = judge_blocks(index, medium);
  return wrong.empty() ? wrong : "after recovery and work, " + wrong;
}

// Where the keys are in the work's model whose change the crash has cut off. What a store leaves for later lies there.
std::vector<std::size_t> index_judge::unfinished_keys() const {
  std::vector<std::size_t> places;
  for (const std::uint64_t key : history_->keys_under_way())
    for (std::size_t i = 0; i < model_.size(); ++i)
      if (model_[i].first == key) places.push_back(i);
  return places;
}

// Entries that the work's model knows, in ascending order; present keys keep their values.
std::string index_judge::load_into(target& index) {
  std::vector<indexes::entry> ascending;
  std::vector<key_state*> states;
  const std::size_t from = random_->below(model_.size());
  for (std::size_t i = from; i < std::min(from + 40, model_.size()); ++i) {
    ascending.push_back({model_[i].first, random_->next()});
    states.push_back(&model_[i].second);
  }
  const std::size_t done = index.load(ascending);
  if (done != ascending.size())
    return "after recovery, a load of " + std::to_string(ascending.size()) + " entries processes " +
           std::to_string(done) + ", and there is space";
  for (std::size_t i = 0; i < ascending.size(); ++i)
    if (!*states[i]) *states[i] = ascending[i].value;
  return {};
}

std::string index_judge::judge_work(target& index) {
  begin_operation();
  if (std::string wrong = index.check(); !wrong.empty()) return "check(): " + wrong;
  std::sort(model_.begin(), model_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  worked_keys_.clear();
  for (const auto& [key, state] : model_) worked_keys_.push_back(key);
  index.know_keys(worked_keys_);
  index.entries(entries_);
  std::vector<indexes::entry>& expected = again_;
  expected.clear();
  for (const auto& [key, state] : model_)
    if (state) expected.push_back({key, *state});
  return difference(expected, entries_);
}

// Every block that is allocated belongs to the index.
std::string index_judge::judge_blocks(target& index, const image_medium* medium) {
  if (medium == nullptr) return {};
  if (!medium->misuse().empty()) return medium->misuse();
  const auto held = index.held_bytes();
  if (!held || *held == medium->used().allocated_bytes) return {};
  return wrong_blocks(*held, medium->used().allocated_bytes);
}

}  // namespace pmlab::verify
