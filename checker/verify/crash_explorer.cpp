// Every state that a crash may leave, opened and judged.
#include "checker/verify/crash_explorer.hpp"

#include "checker/simulator/machine/call_stack.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/choices.hpp"
#include "checker/verify/crashed_process.hpp"
#include "checker/verify/drive_set.hpp"
#include "checker/verify/unable.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace pmlab::verify {
namespace {

constexpr std::size_t image_bytes = std::size_t{64} << 20;

// Memory of the run before the crash is unmapped: recovery crashes if an image holds an address of its DRAM, or of its
// memory's old place. Hiding costs as much as checking some images.
constexpr std::uint64_t hidden_one_in = 64;

crash_explorer* explorer_that_opens = nullptr;

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

// Recoveries on the simulated machine, crashed at each of their own stores and submissions, and judged again.
class crash_explorer::recovery_crasher final : public simulator::persistence_observer {
 public:
  explicit recovery_crasher(crash_explorer& owner)
      : owner_(owner), memory_(image_bytes), drives_(shapes_of(owner.drives_)), image_(image_bytes, drives_.all()) {}

  // Recovers from the state of `c` on the machine. "" or the violation.
  std::string run(const choice& c) {
    simulator::persistent_memory& crashed = owner_.memory_;
    buffer_.resize(crashed.used_bytes());
    owner_.places_.write_memory(buffer_.data(), c);
    memory_.restore(buffer_.data(), buffer_.size());
    memory_.restore_blocks(*crashed.blocks().snapshot(), crashed.blocks().top());
    if (!owner_.drives_.empty()) {
      drives_.restore(owner_.places_.contents_of_drives(c));
      drives_.begin(owner_.random_.next());
    }
    observe(this);
    moments_ = 0;
    wrong_.clear();
    simulator::the_machine().aside(memory_, drives_.all(), [this] {
      try {
        owner_.judge_.recover_on_machine([this] {
          simulator::the_machine().watch(false);
          if (wrong_.empty()) wrong_ = memory_.audit();
          simulator::the_machine().watch(true);
        });
      } catch (const std::exception& e) {
        if (wrong_.empty()) wrong_ = std::string("recovery throws: ") + thrown_text(e);
      }
    });
    observe(nullptr);
    return wrong_.empty() ? "" : "after a crash of the recovery, " + wrong_;
  }

  void after_store(const simulator::unpersisted_line& /*line*/) override { look(); }
  void after_fence() override { look(); }
  void amid_publication() override {
    owner_.draw_aside([this] { look(); });
  }
  void after_submission(const simulator::persistent_drive& /*drive*/, std::uint32_t /*unit*/) override { look(); }

 private:
  void observe(persistence_observer* observer) {
    memory_.observe(observer);
    drives_.observe(observer);
  }

  static std::vector<blocks::geometry> shapes_of(std::span<simulator::persistent_drive* const> drives) {
    std::vector<blocks::geometry> shapes;
    for (const simulator::persistent_drive* d : drives) shapes.push_back(d->shape());
    return shapes;
  }

  // The first moments are all examined, and of later ones fewer and fewer: a long recovery, as of a store with drives,
  // took half of a search otherwise, and other states are worth more.
  [[nodiscard]] bool is_passed_over() {
    constexpr std::uint64_t examined_in_any_case = 8;
    return ++moments_ > examined_in_any_case && !owner_.drives_.empty() &&
           owner_.random_.below(moments_) >= examined_in_any_case;
  }

  void look() {
    if (!wrong_.empty() || is_passed_over()) return;
    const uncertain_places places(memory_, drives_.all());
    choice c(places.count());
    for (unsigned kind = 0; kind < 3 && wrong_.empty(); ++kind) {
      for (std::size_t i = 0; i < c.size(); ++i) {
        const std::uint32_t most = places.most(i);
        c[i] = kind == 0 ? 0 : kind == 1 ? most : static_cast<std::uint32_t>(owner_.random_.below(most + 1));
      }
      places.write(image_, c);
      const opened_state state{&memory_, drives_.all(), &places, c, owner_.random_};
      ++owner_.counts_.states;
      ++owner_.counts_.judged;
      ++owner_.counts_.in_recovery;
      wrong_ = owner_.open_and_judge(image_, state);
      if (c.empty()) break;
    }
  }

  crash_explorer& owner_;
  simulator::persistent_memory memory_;
  drive_set drives_;
  crash_image image_;
  std::vector<std::byte> buffer_;
  std::string wrong_;
  std::uint64_t moments_ = 0;  // this recovery has had so many
};

crash_explorer::crash_explorer(simulator::persistent_memory& memory,
                               std::span<simulator::persistent_drive* const> drives, image_judge& judge,
                               crash_counts& counts, std::function<void(const std::string&)> violated)
    : memory_(memory),
      drives_(drives),
      places_(memory, drives),
      judge_(judge),
      counts_(counts),
      violated_(std::move(violated)),
      image_(image_bytes, drives) {
  if (judge.opens_images()) recovery_ = std::make_unique<recovery_crasher>(*this);
}
crash_explorer::~crash_explorer() = default;

void crash_explorer::begin(std::uint64_t seed, const crash_options& options) {
  options_ = options;
  random_ = splitmix64(seed * 7919 + 1);
  seen_.clear();
  kept_ = {};
  could_be_kept_ = 0;
}

// Never left out: the states are the same, and a promise may have become false in them.
void crash_explorer::promised() { point(nothing_fixed, options_.states_per_promise); }

void crash_explorer::after_store(const simulator::unpersisted_line& line) {
  if (!is_left_out()) point(line.position, options_.states_per_point);
}

// A fence makes states impossible and none possible; a publication makes a new one.
void crash_explorer::after_fence() {
  if (!is_left_out()) point(nothing_fixed, options_.states_per_point);
}

void crash_explorer::after_cached_store(std::uint32_t line, unsigned host) {
  if (is_left_out()) return;
  places_.look();
  visit_states(places_.place_of(line, host), options_.states_per_point);
}

void crash_explorer::amid_publication() {
  if (options_.only_keep_one) return;
  is_aside_ = true;
  draw_aside([this] { after_fence(); });
  is_aside_ = false;
}

void crash_explorer::after_submission(const simulator::persistent_drive& drive, std::uint32_t unit) {
  if (is_left_out()) return;
  point(unit == simulator::nowhere ? nothing_fixed : places_.place_of(drive, unit), options_.states_per_point);
}

void crash_explorer::point(std::size_t fixed, std::size_t states) {
  places_.look();
  visit_states(fixed, states);
}

// At most `states` of the states of now, in which the place `fixed` has all of its stores or versions. REQUIRES: the
// places have been looked for.
void crash_explorer::visit_states(std::size_t fixed, std::size_t states) {
  ++counts_.points;
  for_each_choice(
      choice_, places_.count(), places_.lines(), fixed, states, random_,
      [this](std::size_t i) { return places_.most(i); }, [this](const choice& c) { visit(c); });
}

void crash_explorer::keep(const choice& c) {
  // What a recovery has repaired is what a second crash may lose. One state in so many is opened for it.
  constexpr std::uint64_t opened_one_in = 8;
  const bool repaired = options_.prefer_repaired && random_.one_in(opened_one_in) && is_repaired(c);
  if (kept_.is_repaired && !repaired) return;
  if (repaired && !kept_.is_repaired) could_be_kept_ = 0;
  if (!random_.one_in(++could_be_kept_)) return;
  kept_.is_repaired = repaired;
  judge_.keep_history();
  choice left = c;
  if (options_.keep_caches) {
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = places_.most(i);
    kept_.durable.assign(memory_.durable(), memory_.durable() + memory_.used_bytes());
    kept_.waiting = memory_.waiting();
  }
  kept_.bytes.resize(memory_.used_bytes());
  places_.write_memory(kept_.bytes.data(), left);
  kept_.blocks = memory_.blocks().snapshot();
  kept_.top = memory_.blocks().top();
  kept_.drives = places_.contents_of_drives(left);
}

bool crash_explorer::is_repaired(const choice& c) {
  if (!judge_.opens_images()) return false;
  before_recovery_.resize(memory_.used_bytes());
  places_.write_memory(before_recovery_.data(), c);
  places_.write(image_, c);
  const std::string wrong = while_it_opens({&memory_, drives_, &places_, c, random_}, [this]() -> std::string {
    judge_.open_and_close(image_);
    return {};
  });
  return wrong.empty() && std::memcmp(image_.memory().area(), before_recovery_.data(), before_recovery_.size()) != 0;
}

crash_image& crash_explorer::image_of_kept() {
  std::copy(kept_.bytes.begin(), kept_.bytes.end(), image_.memory().area());
  std::size_t allocated = 0;
  for (const auto& [offset, bytes] : *kept_.blocks) allocated += bytes;
  image_.memory().begin(kept_.bytes.size(), kept_.blocks, allocated);
  for (std::size_t d = 0; d < kept_.drives.size(); ++d) {
    const std::span<const std::byte*> base = image_.drive(d).base();
    for (std::size_t s = 0; s < base.size(); ++s) base[s] = kept_.drives[d].data() + s * simulator::sector_bytes;
    image_.drive(d).begin();
  }
  return image_;
}

void crash_explorer::visit(const choice& c) {
  if (options_.only_keep_one) return keep(c);
  ++counts_.states;
  if (options_.remember_images) {
    std::uint64_t hash = places_.hash(c);
    hash ^= (judge_.history_version() + 1) * golden_ratio ^ memory_.blocks().live_bytes() * 0xc2b2ae3d27d4eb4fU;
    if (is_aside_) hash = ~hash;
    if (!seen_.insert(hash)) return;
  }
  if (!drives_.empty()) count_losses(c);
  const bool crash_recovery = recovery_ != nullptr && random_.one_in(options_.crash_recovery_one_in);
  if (std::string wrong = examine(c, crash_recovery); !wrong.empty()) report(c, std::move(wrong));
}

void crash_explorer::count_losses(const choice& c) {
  bool lines = false;
  bool units = false;
  for (std::size_t i = 0; i < c.size(); ++i)
    if (c[i] != places_.most(i)) (i < places_.lines() ? lines : units) = true;
  counts_.lost_lines += lines ? 1 : 0;
  counts_.lost_units += units ? 1 : 0;
  counts_.lost_both += lines && units ? 1 : 0;
}

std::string crash_explorer::examine(const choice& c, bool crash_recovery) {
  ++counts_.judged;
  if (!judge_.opens_images())
    return in_crashed_process(
        memory_, [&] { places_.crash_memory(c); }, [this] { return judge_.judge_here(options_, random_); });
  places_.write(image_, c);
  std::string wrong;
  {
    const hidden_run hidden(memory_, counts_.judged % hidden_one_in == 1);
    wrong = open_and_judge(image_, {&memory_, drives_, &places_, c, random_});
  }
  if (!wrong.empty() || !crash_recovery) return wrong;
  return recovery_->run(c);
}

std::string crash_explorer::open_and_judge(crash_image& image, const opened_state& state) {
  return while_it_opens(state, [&] { return judge_.judge(image, options_, random_); });
}

template <class Work>
std::string crash_explorer::while_it_opens(const opened_state& state, Work&& work) {
  // Recovery code gets its own TLS block.
  simulator::the_machine().borrow_watchers_storage(true);
  opened_ = state;
  explorer_that_opens = this;
  std::string wrong;
  try {
    wrong = work();
  } catch (const std::exception& e) {
    wrong = std::string("the crash state cannot be opened, or an operation throws: ") + thrown_text(e);
  }
  explorer_that_opens = nullptr;
  simulator::the_machine().borrow_watchers_storage(false);
  return wrong;
}

crash_explorer* crash_explorer::opening() noexcept { return explorer_that_opens; }

std::string crash_explorer::judge_in_copy(std::uint64_t& steps) {
  simulator::machine& machine = simulator::the_machine();
  memory_.show();
  machine.dram()->show();
  machine.begin_in_copy({.access_limit = simulator::machine::patience});
  const opened_state& state = opened_;
  std::vector<std::byte> bytes(state.memory->used_bytes());
  state.places->write_memory(bytes.data(), state.kept);
  std::vector<blocks::geometry> shapes;
  for (const simulator::persistent_drive* d : state.drives) shapes.push_back(d->shape());
  const auto memory = std::make_unique<simulator::persistent_memory>(image_bytes);
  memory->restore(bytes.data(), bytes.size());
  memory->restore_blocks(*state.memory->blocks().snapshot(), state.memory->blocks().top());
  memory->keep_log(false);
  const drive_set drives(shapes);
  if (!shapes.empty()) drives.restore(state.places->contents_of_drives(state.kept));
  drives.begin(1);
  machine.use(memory.get());
  machine.use_drives(drives.all());
  random_ = state.random;
  machine.watch(true);
  std::string wrong;
  try {
    wrong = judge_.judge_on_machine(options_, random_);
  } catch (const std::exception& e) {
    wrong = std::string("the crash state cannot be opened, or an operation throws: ") + thrown_text(e);
  }
  machine.watch(false);
  steps = machine.steps();
  return wrong;
}

std::string crash_explorer::circumstances() const { return circumstances_of(judge_, *opened_.places, opened_.kept); }

std::string crash_explorer::circumstances_of(const image_judge& judge, const uncertain_places& places,
                                             std::span<const std::uint32_t> kept) {
  const std::string under_way = judge.under_way();
  const std::string lost = places.describe_loss(kept);
  return std::string("\n  crash ") + (under_way.empty() ? "between operations" : "during " + under_way) +
         (lost.empty() ? "\n  lost: nothing; everything that was stored and written had become durable" : lost) +
         places.story();
}

// Minimizes the loss, and reports it.
void crash_explorer::report(choice c, std::string what) {
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (c[i] == places_.most(i)) continue;
    choice less = c;
    less[i] = places_.most(i);
    if (std::string wrong = examine(less, false); !wrong.empty()) {
      c = std::move(less);
      what = std::move(wrong);
    }
  }
  std::string text = what + circumstances_of(judge_, places_, c);
  const auto* const current = simulator::the_machine().current();
  if (current != nullptr)
    text += "\n  last access before the crash: " +
            simulator::code_address_with_callers(simulator::callers_behind(current->last_caller));
  violated_(text);
}

}  // namespace pmlab::verify
