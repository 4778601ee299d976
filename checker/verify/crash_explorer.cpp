// Every state that a crash may leave, opened and judged.
#include "checker/verify/crash_explorer.hpp"

#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/crashed_process.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace pmlab::verify {
namespace {

constexpr std::size_t image_bytes = std::size_t{64} << 20;
constexpr std::size_t nothing_fixed = std::numeric_limits<std::size_t>::max();

// Of many keys, one in so many is searched for in an image, and one image in so many gets further work. Walks see them
// all.
constexpr std::size_t many_keys = 500;
constexpr std::size_t sample = 8;

// Memory of the run before the crash is unmapped: recovery crashes if an image holds an address of its DRAM, or of its
// memory's old place. Hiding costs as much as checking some images.
constexpr std::uint64_t hidden_one_in = 64;

std::string in_words(const key_state& state) { return to_string(answer{{}, state}); }

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

class hidden_run {
 public:
  hidden_run(const simulator::persistent_memory& memory, bool on) : memory_(on ? &memory : nullptr) {
    if (memory_ == nullptr) return;
    memory_->hide();
    simulator::the_machine().dram()->hide();
  }
  hidden_run(const hidden_run&) = delete;
  hidden_run& operator=(const hidden_run&) = delete;
  ~hidden_run() {
    if (memory_ == nullptr) return;
    memory_->show();
    simulator::the_machine().dram()->show();
  }

 private:
  const simulator::persistent_memory* memory_;
};

}  // namespace

// Recoveries on the simulated machine, crashed at each of their own stores, and judged again.
class crash_explorer::recovery_crasher final : public simulator::persistence_observer {
 public:
  explicit recovery_crasher(crash_explorer& owner) : owner_(owner), memory_(image_bytes), image_(image_bytes) {}

  // Opens the image of `choice` on the machine. "" or the violation.
  std::string run(const std::vector<std::uint32_t>& choice) {
    simulator::persistent_memory& crashed = owner_.memory_;
    buffer_.resize(crashed.used_bytes());
    crashed.write_image(buffer_.data(), choice);
    memory_.restore(buffer_.data(), buffer_.size());
    memory_.restore_blocks(*crashed.blocks().snapshot(), crashed.blocks().top());
    memory_.observe(this);
    wrong_.clear();
    simulator::the_machine().aside(memory_, [this] {
      try {
        const subject& kind = owner_.kind_;
        const std::unique_ptr<target> index = kind.open_durable_part ? kind.open_durable_part() : kind.open_simulated();
        simulator::the_machine().watch(false);
        if (wrong_.empty()) wrong_ = memory_.audit();
        simulator::the_machine().watch(true);
      } catch (const std::exception& e) {
        if (wrong_.empty()) wrong_ = std::string("the index cannot be opened: ") + e.what();
      }
    });
    memory_.observe(nullptr);
    return wrong_.empty() ? "" : "after a crash of the recovery, " + wrong_;
  }

  void after_store(const simulator::unpersisted_line& /*line*/) override { look(); }
  void after_fence() override { look(); }

 private:
  void look() {
    if (!wrong_.empty()) return;
    const std::vector<std::uint32_t>& lines = memory_.unpersisted();
    for (unsigned kind = 0; kind < 3 && wrong_.empty(); ++kind) {
      std::vector<std::uint32_t> choice(lines.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto most = static_cast<std::uint32_t>(memory_.log(lines[i]).stores.size());
        choice[i] = kind == 0 ? 0 : kind == 1 ? most : static_cast<std::uint32_t>(owner_.random_.below(most + 1));
      }
      memory_.write_image(image_.area(), choice);
      image_.begin(memory_.used_bytes(), memory_.blocks().snapshot(), memory_.blocks().live_bytes());
      ++owner_.counts_.states;
      ++owner_.counts_.judged;
      ++owner_.counts_.in_recovery;
      wrong_ = owner_.open_and_judge(image_);
      if (lines.empty()) break;
    }
  }

  crash_explorer& owner_;
  simulator::persistent_memory memory_;
  image_medium image_;
  std::vector<std::byte> buffer_;
  std::string wrong_;
};

crash_explorer::crash_explorer(const subject& kind, simulator::persistent_memory& memory, crash_counts& counts,
                               std::function<void(const std::string&)> violated)
    : kind_(kind), memory_(memory), counts_(counts), violated_(std::move(violated)), image_(image_bytes) {
  if (kind.open_image != nullptr) recovery_ = std::make_unique<recovery_crasher>(*this);
}
crash_explorer::~crash_explorer() = default;

void crash_explorer::begin(history_model* p, std::uint64_t seed, const crash_options& options) {
  options_ = options;
  history_ = p;
  random_ = splitmix64(seed * 7919 + 1);
  seen_.clear();
  kept_ = {};
  could_be_kept_ = 0;
}

// Never left out: the states are the same, and a promise may have become false in them.
void crash_explorer::promised() { point(nothing_fixed, options_.states_per_promise); }

void crash_explorer::after_store(const simulator::unpersisted_line& line) {
  if (options_.points_one_in > 1 && !random_.one_in(options_.points_one_in)) return;
  point(line.position, options_.states_per_point);
}

// A fence makes states impossible and none possible; a publication makes a new one.
void crash_explorer::after_fence() {
  if (options_.points_one_in > 1 && !random_.one_in(options_.points_one_in)) return;
  point(nothing_fixed, options_.states_per_point);
}

// At most `states` (two at least) of the states of now, in which the unpersisted line at place `fixed` has all of its
// stores.
void crash_explorer::point(std::size_t fixed, std::size_t states) {
  ++counts_.points;
  const std::vector<std::uint32_t>& lines = memory_.unpersisted();
  const auto most = [&](std::size_t i) { return static_cast<std::uint32_t>(memory_.log(lines[i]).stores.size()); };
  std::size_t combinations = 1;
  for (std::size_t i = 0; i < lines.size() && combinations <= states; ++i)
    if (i != fixed) combinations *= most(i) + 1;
  std::vector<std::uint32_t>& choice = choice_;
  choice.assign(lines.size(), 0);
  if (fixed != nothing_fixed) choice[fixed] = most(fixed);

  if (combinations <= states) {
    for (bool more = true; more;) {
      visit(choice);
      std::size_t digit = 0;
      for (more = false; digit < choice.size() && !more; ++digit) {
        if (digit == fixed) continue;
        if (choice[digit] < most(digit)) {
          ++choice[digit];
          more = true;
        } else {
          choice[digit] = 0;
        }
      }
    }
    return;
  }

  visit(choice);  // all others behind
  for (std::size_t i = 0; i < lines.size(); ++i) choice[i] = most(i);
  visit(choice);  // all ahead
  for (std::size_t made = 2; made < states; ++made) {
    const std::size_t special = random_.below(lines.size());
    const std::uint64_t kind = random_.below(3);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (kind == 0) choice[i] = i == special ? static_cast<std::uint32_t>(random_.below(most(i))) : most(i);
      if (kind == 1) choice[i] = i == special ? 1 + static_cast<std::uint32_t>(random_.below(most(i))) : 0;
      if (kind == 2) choice[i] = static_cast<std::uint32_t>(random_.below(most(i) + 1));
    }
    if (fixed != nothing_fixed) choice[fixed] = most(fixed);
    visit(choice);
  }
}

void crash_explorer::keep(const std::vector<std::uint32_t>& choice) {
  if (!random_.one_in(++could_be_kept_)) return;
  kept_.bytes.resize(memory_.used_bytes());
  memory_.write_image(kept_.bytes.data(), choice);
  kept_.blocks = memory_.blocks().snapshot();
  kept_.top = memory_.blocks().top();
}

std::vector<indexes::entry> crash_explorer::entries_of_kept() {
  std::copy(kept_.bytes.begin(), kept_.bytes.end(), image_.area());
  std::size_t allocated = 0;
  for (const auto& [offset, bytes] : *kept_.blocks) allocated += bytes;
  image_.begin(kept_.bytes.size(), kept_.blocks, allocated);
  std::vector<indexes::entry> entries;
  const std::unique_ptr<target> index = kind_.open_image(image_);
  index->know_keys(history_->keys());
  index->entries(entries);
  return entries;
}

void crash_explorer::visit(const std::vector<std::uint32_t>& choice) {
  if (options_.only_keep_one) return keep(choice);
  ++counts_.states;
  if (options_.remember_images) {
    std::uint64_t hash = memory_.durable_hash();
    for (std::size_t i = 0; i < choice.size(); ++i)
      if (choice[i] != 0) hash = memory_.hash_with(hash, memory_.log(memory_.unpersisted()[i]), choice[i]);
    hash ^= (history_->version() + 1) * golden_ratio ^ memory_.blocks().live_bytes() * 0xc2b2ae3d27d4eb4fU;
    if (!seen_.insert(hash)) return;
  }
  const bool crash_recovery = recovery_ != nullptr && random_.one_in(options_.crash_recovery_one_in);
  if (std::string wrong = examine(choice, crash_recovery); !wrong.empty()) report(choice, std::move(wrong));
}

std::string crash_explorer::examine(const std::vector<std::uint32_t>& choice, bool crash_recovery) {
  ++counts_.judged;
  if (kind_.open_recovered != nullptr)
    return in_crashed_process(memory_, choice, [this] {
      const std::unique_ptr<target> index = kind_.open_recovered();
      index->know_keys(history_->keys());
      return judge(*index, nullptr);
    });
  memory_.write_image(image_.area(), choice);
  image_.begin(memory_.used_bytes(), memory_.blocks().snapshot(), memory_.blocks().live_bytes());
  std::string wrong;
  {
    const hidden_run hidden(memory_, counts_.judged % hidden_one_in == 1);
    wrong = open_and_judge(image_);
  }
  if (!wrong.empty() || !crash_recovery) return wrong;
  return recovery_->run(choice);
}

std::string crash_explorer::open_and_judge(image_medium& image) {
  // Recovery code gets its own TLS block.
  simulator::the_machine().borrow_watchers_storage(true);
  std::string wrong;
  try {
    const std::unique_ptr<target> index = kind_.open_image(image);
    wrong = judge(*index, &image);
  } catch (const std::exception& e) {
    wrong = std::string("the index cannot be opened, or an operation throws: ") + e.what();
  }
  simulator::the_machine().borrow_watchers_storage(false);
  return wrong;
}

std::string crash_explorer::judge(target& index, image_medium* medium) {
  if (std::string wrong = read_back(index); !wrong.empty()) return wrong;
  if (std::string wrong = history_->judge(entries_); !wrong.empty()) return wrong;
  if (std::string wrong = judge_blocks(index, medium); !wrong.empty()) return wrong;
  return sampled() && !random_.one_in(sample) ? std::string() : work_on(index, medium);
}

bool crash_explorer::sampled() const { return history_->keys().size() > many_keys; }

// Every way of reading must agree: `entries_` is the common result.
std::string crash_explorer::read_back(target& index) {
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
    again_.resize(entries_.size() + 2);
    const std::size_t count = index.scan(0, again_);
    if (std::string wrong = difference(entries_, std::span(again_).first(std::min(count, again_.size())));
        !wrong.empty())
      return "a scan differs from a walk: " + wrong;
  }
  return search_for_all(index);
}

// One key after the other, or many at once.
std::string crash_explorer::search_for_all(target& index) {
  const std::vector<std::uint64_t>& all = history_->keys();
  std::span<const std::uint64_t> keys = all;
  if (sampled()) {
    searched_.clear();
    for (std::size_t i = random_.below(sample); i < all.size(); i += sample) searched_.push_back(all[i]);
    keys = searched_;
  }
  const bool together = random_.one_in(4);
  found_.assign(keys.size(), std::nullopt);
  if (together) index.find_batch(keys, found_);
  std::size_t at = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
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
std::string crash_explorer::work_on(target& index, image_medium* medium) {
  const bool is_long = random_.one_in(options_.long_work_one_in);
  const std::size_t operations = is_long ? options_.long_work : options_.work_after_recovery;
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
  if (medium != nullptr && random_.one_in(8))
    medium->limit(simulator::space_limit(
        {.spare = random_.below(4), .refused = 1 + random_.below(6), .one_in = 1 + random_.below(2)}));
  const std::size_t known = model_.size();
  for (std::size_t i = 0; i < operations; ++i) {
    std::size_t which = random_.below(known);
    step s{random_action(random_, {}), model_[which].first, random_.next()};
    if (kind_.reserves_sentinels && s.what == action::upsert) s.what = action::update;
    if (is_long && !random_.one_in(4)) {
      // Beside a known key, where no key of the run is.
      const std::uint64_t fresh = model_[which].first ^ (random_.next() >> 20);
      const bool taken = std::any_of(model_.begin(), model_.end(), [&](const auto& m) { return m.first == fresh; });
      if (!taken) {
        which = model_.size();
        model_.emplace_back(fresh, std::nullopt);
        s = {action::insert, fresh, random_.next()};
      }
    }
    const key_state before = model_[which].second;
    const answer expected = expect(s, model_[which].second);
    const std::uint64_t refused = medium == nullptr ? 0 : medium->limit().refusals();
    const answer got = index.perform(s);
    if (got.changed == indexes::outcome::full && medium != nullptr && medium->limit().refusals() != refused)
      model_[which].second = before;
    else if (got != expected)
      return "after recovery, " + to_string(s) + " answers: " + to_string(got) +
             "; it must answer: " + to_string(expected);
  }
  if (std::string wrong = judge_work(index); !wrong.empty()) return "after recovery and work, " + wrong;
  const std::string wrong = judge_blocks(index, medium);
  return wrong.empty() ? wrong : "after recovery and work, " + wrong;
}

// Entries that the work's model knows, in ascending order; present keys keep their values.
std::string crash_explorer::load_into(target& index) {
  std::vector<indexes::entry> ascending;
  std::vector<key_state*> states;
  const std::size_t from = random_.below(model_.size());
  for (std::size_t i = from; i < std::min(from + 40, model_.size()); ++i) {
    ascending.push_back({model_[i].first, random_.next()});
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

std::string crash_explorer::judge_work(target& index) {
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
std::string crash_explorer::judge_blocks(target& index, const image_medium* medium) {
  if (medium == nullptr) return {};
  if (!medium->misuse().empty()) return medium->misuse();
  const auto held = index.held_bytes();
  if (!held || *held == medium->used().allocated_bytes) return {};
  return "the index holds " + std::to_string(*held) + " bytes, and " + std::to_string(medium->used().allocated_bytes) +
         " are allocated: leaked, or freed while in use";
}

// Minimizes the loss, and reports it.
void crash_explorer::report(std::vector<std::uint32_t> choice, std::string what) {
  const std::vector<std::uint32_t>& lines = memory_.unpersisted();
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const auto most = static_cast<std::uint32_t>(memory_.log(lines[i]).stores.size());
    if (choice[i] == most) continue;
    std::vector<std::uint32_t> less = choice;
    less[i] = most;
    if (std::string wrong = examine(less, false); !wrong.empty()) {
      choice = std::move(less);
      what = std::move(wrong);
    }
  }
  std::string text = what + "\n  crash ";
  const std::string under_way = history_->under_way();
  text += under_way.empty() ? "between operations" : "during " + under_way;
  bool lost = false;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const simulator::unpersisted_line& l = memory_.log(lines[i]);
    if (choice[i] == l.stores.size()) continue;
    text += std::string("\n  lost: ") + (lost ? "and " : "") + std::to_string(l.stores.size() - choice[i]) +
            " store(s) to the line at offset " + std::to_string(std::size_t{l.number} * media::cache_line_bytes) +
            ", first the one at " + simulator::code_address(l.stores[choice[i]].caller);
    lost = true;
  }
  if (!lost) text += "\n  lost: no store; everything that was stored had become durable";
  const auto* const current = simulator::the_machine().current();
  if (current != nullptr) text += "\n  last access before the crash: " + simulator::code_address(current->last_caller);
  violated_(text);
}

}  // namespace pmlab::verify
