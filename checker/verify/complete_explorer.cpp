// Every state that a crash of a one-threaded run may leave, opened and judged.
#include "checker/verify/complete_explorer.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/verify/choices.hpp"
#include "checker/verify/unable.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <span>
#include <utility>

namespace pmlab::verify {
namespace {

// A group of more points is searched as two.
constexpr std::size_t most_points = 256;
// Stands for bytes that no read has decided yet: a read that the machine did not see returns it.
constexpr std::byte undecided{0xeb};

complete_explorer* explorer_on_machine = nullptr;

constexpr const char* what_to_leave_out =
    "leave out of the subject what differs from run to run, such as addresses, clocks and process numbers";

[[noreturn]] void end_diverged() {
  end_unable("recovery or the check reads something else after equal reads: it is not deterministic",
             what_to_leave_out);
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept { return mix_bits((hash ^ value) * golden_ratio); }

// The image ends behind its last block, however much was used in between.
std::size_t bytes_with(const simulator::block_table::extents& blocks) noexcept {
  std::size_t end = simulator::persistent_memory::first_block;
  for (const auto& [offset, bytes] : blocks) end = std::max(end, offset + bytes);
  return (end + 2 * media::xpline_bytes - 1) / media::xpline_bytes * media::xpline_bytes;
}

std::uint64_t hash_of(const simulator::block_table::extents& blocks) noexcept {
  std::uint64_t hash = 1;
  for (const auto& [offset, bytes] : blocks) hash = mix(mix(hash, offset), bytes);
  return hash;
}

// The line's content after each number of its stores.
std::vector<line_content> contents_of(const line_content& durable, const simulator::unpersisted_line* log) {
  std::vector<line_content> contents{durable};
  if (log == nullptr) return contents;
  for (const simulator::logged_store& s : log->stores) {
    contents.push_back(contents.back());
    contents.back()[s.word] = s.value;
  }
  return contents;
}

}  // namespace

complete_explorer::complete_explorer(simulator::persistent_memory& memory, index_judge& judge, complete_counts& counts,
                                     std::function<void(const std::string&)> violated)
    : memory_(memory),
      judge_(judge),
      counts_(counts),
      violated_(std::move(violated)),
      image_(memory.bytes()),
      place_of_line_(memory.bytes() / media::cache_line_bytes) {
  image_.keep_log(false);
}

complete_explorer::~complete_explorer() { memory_.note_durable_lines(nullptr); }

void complete_explorer::begin(std::uint64_t seed, const crash_options& options, std::size_t operations) {
  options_ = options;
  how_ = *options.complete;
  first_operation_ = how_.last_operations == 0 ? 0 : operations - std::min(how_.last_operations, operations);
  seed_ = seed;
  is_open_ = is_complete_ = has_changed_ = false;
  joint_ = operations_ = 0;
  waits_since_.clear();
  memory_.keep_every_store(true);
  memory_.note_durable_lines(&durable_lines_);
}

// ---- the points of a run ----

void complete_explorer::after_store(const simulator::unpersisted_line& /*line*/) {
  begin_event();
  has_changed_ = true;
  count_point();
}

void complete_explorer::before_durable() {
  if (writes_back_) return;
  begin_event();
  if (has_changed_) record();
}

void complete_explorer::after_fence() {
  if (writes_back_) return;
  begin_event();
  has_changed_ = true;
  count_point();
}

void complete_explorer::promised() {
  if (!is_open_) open_joint();
  ++operations_;
  count_point();
  record();
  is_complete_ = true;
  if (how_.window != 0) write_old_lines_back();
}

// By the machine, as caches do: no event of the history.
void complete_explorer::write_old_lines_back() {
  forget_waits_of_durable_lines();
  simulator::flush_list old;
  for (const std::uint32_t id : memory_.unpersisted()) {
    const std::uint32_t line = memory_.log(id).number;
    const std::size_t since = waits_since_.try_emplace(line, operations_ - 1).first->second;
    if (operations_ - since < how_.window) continue;
    memory_.flushed(reinterpret_cast<std::uintptr_t>(memory_.start()) + std::size_t{line} * media::cache_line_bytes,
                    old);
  }
  writes_back_ = true;
  memory_.fenced(old);
  writes_back_ = false;
  forget_waits_of_durable_lines();
}

void complete_explorer::forget_waits_of_durable_lines() {
  for (const std::uint32_t line : durable_lines_) waits_since_.erase(line);
}

void complete_explorer::finish() {
  if (is_open_) search();
  memory_.note_durable_lines(nullptr);
  memory_.keep_every_store(false);
}

void complete_explorer::begin_event() {
  if (is_open_ && !is_complete_) return;
  if (is_open_) {
    search();
    ++joint_;
  }
  open_joint();
}

void complete_explorer::count_point() {
  long double states = 1;
  for (const std::uint32_t id : memory_.unpersisted())
    states *= static_cast<long double>(memory_.log(id).stores.size() + 1);
  ++points_of_joint_;
  ++counts_.points;
  counts_.states += states;
  if (how_.every_state && is_mine_) open_every_state();
}

void complete_explorer::open_joint() {
  is_open_ = true;
  is_complete_ = false;
  has_changed_ = true;
  points_of_joint_ = 0;
  records_of_joint_ = 0;
  if (joint_ >= shared_search::most_joints)
    end_unable("it has too many crash points for one search", "give fewer --operations");
  is_mine_ =
      !how_.only_count && operations_ >= first_operation_ && (how_.shared == nullptr || how_.shared->take(joint_));
  if (how_.shared != nullptr &&
      !how_.shared->agree(joint_, mix(mix(memory_.durable_hash(), counts_.points), memory_.blocks().live_bytes())))
    end_unable("the same operations have two histories: it is not deterministic", what_to_leave_out);
  states_.clear();
  points_.clear();
  histories_.clear();
  outcomes_.clear();
  images_.clear();
  forget_waits_of_durable_lines();
  durable_lines_.clear();
  were_unpersisted_.clear();
  if (is_mine_) base_.assign(memory_.durable(), memory_.durable() + memory_.used_bytes());
}

void complete_explorer::remember_history() {
  if (!histories_.empty() && version_ == judge_.history_version()) return;
  histories_.push_back(std::make_unique<history_model>(judge_.history()));
  version_ = judge_.history_version();
}

line_content complete_explorer::durable_content(std::uint32_t line) const {
  line_content content;
  std::memcpy(content.data(), memory_.durable() + std::size_t{line} * media::cache_line_bytes, sizeof content);
  return content;
}

complete_explorer::recorded_point complete_explorer::point_of_now() const {
  recorded_point point{histories_.size() - 1, memory_.blocks().snapshot(), {}, nullptr};
  for (const std::uint32_t id : memory_.unpersisted()) {
    const simulator::unpersisted_line& log = memory_.log(id);
    point.lines.push_back({log, durable_content(log.number)});
  }
  if (const auto* const current = simulator::the_machine().current(); current != nullptr)
    point.last_caller = current->last_caller;
  return point;
}

// The states of now. Lines that are not among those that changed are as they were at the point before.
void complete_explorer::record() {
  has_changed_ = false;
  // In every process, so that all have the same groups.
  if (++records_of_joint_ >= most_points) is_complete_ = true;
  forget_waits_of_durable_lines();
  if (!is_mine_ || how_.every_state) return durable_lines_.clear();
  remember_history();
  std::vector<std::uint32_t> changed = std::exchange(durable_lines_, {});
  changed.insert(changed.end(), were_unpersisted_.begin(), were_unpersisted_.end());
  were_unpersisted_.clear();
  for (const std::uint32_t id : memory_.unpersisted()) were_unpersisted_.push_back(memory_.log(id).number);
  changed.insert(changed.end(), were_unpersisted_.begin(), were_unpersisted_.end());
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  states_.add_point();
  for (const std::uint32_t line : changed) {
    const simulator::unpersisted_line* log = memory_.log_of(line);
    if (log != nullptr && log->position == simulator::nowhere) log = nullptr;
    line_content before{};
    const std::size_t at = std::size_t{line} * media::cache_line_bytes;
    if (at + sizeof before <= base_.size()) std::memcpy(before.data(), base_.data() + at, sizeof before);
    states_.set(line, before, contents_of(durable_content(line), log));
  }
  states_.end_point();
  points_.push_back(point_of_now());
}

// ---- the search ----

void complete_explorer::search() {
  if (!is_mine_) return;
  counts_.joint = joint_;
  counts_.operations_begun = operations_ + 1;
  if (!how_.every_state) {
    std::vector<std::pair<blocks, point_set>> groups;
    for (std::size_t p = 0; p < points_.size(); ++p) {
      auto group =
          std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == points_[p].allocated; });
      if (group == groups.end()) group = groups.insert(group, {points_[p].allocated, {}});
      group->second.add(p);
    }
    for (const auto& [allocated, points] : groups) search_with(allocated, points);
  }
  ++counts_.joints;
  counts_.points_covered += points_of_joint_;
}

// The states at these points, where just these blocks are allocated.
void complete_explorer::search_with(const blocks& allocated, const point_set& points) {
  course_search course(states_, points);
  bytes_.assign(bytes_with(*allocated), std::byte{0});
  std::memcpy(bytes_.data(), base_.data(), std::min(bytes_.size(), base_.size()));
  const std::vector<joined_states::line>& lines = states_.lines();
  std::size_t first = 0;
  while (!points.has(first)) ++first;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::byte* const line = bytes_.data() + std::size_t{lines[i].number} * media::cache_line_bytes;
    if (line >= bytes_.data() + bytes_.size()) continue;
    for (const joined_states::possible& p : lines[i].contents)
      if (p.points.has(first)) put(line, p.content, ~byte_mask{0});
    line_content filler;
    std::memset(filler.data(), std::to_integer<int>(undecided), sizeof filler);
    put(line, filler, course.uncertain(i));
    if (course.uncertain(i) != 0) place_of_line_[lines[i].number] = static_cast<std::uint32_t>(i + 1);
  }
  course_ = &course;
  const std::uint64_t hash = hash_of(*allocated);
  memory_.hide();
  while (course.next()) {
    wrong_history_ = any_history;
    open(*allocated, [this](std::span<const indexes::entry> entries) { return accept(entries); });
    if (course.has_diverged()) end_diverged();
    if (outcomes_.insert(mix(values_, hash))) {
      ++counts_.outcomes;
      counts_.fingerprint += mix(values_, hash);
    }
  }
  memory_.show();
  course_ = nullptr;
  for (const joined_states::line& l : lines)
    if (l.number < place_of_line_.size()) place_of_line_[l.number] = 0;
}

// By the history of each point that has a state of this course.
std::string complete_explorer::accept(std::span<const indexes::entry> entries) {
  return simulator::the_machine().quietly([&]() -> std::string {
    std::size_t judged = any_history;
    for (std::size_t p = 0; p < points_.size(); ++p) {
      const std::size_t history = points_[p].history;
      if (history == judged || !course_->points().has(p)) continue;
      judged = history;
      if (std::string wrong = histories_[history]->judge(entries); !wrong.empty()) {
        wrong_history_ = history;
        return wrong;
      }
    }
    return {};
  });
}

// One image after the other, as the machine's model defines them.
void complete_explorer::open_every_state() {
  remember_history();
  const blocks allocated = memory_.blocks().snapshot();
  const std::uint64_t hash = hash_of(*allocated);
  splitmix64 unused(1);
  const auto& lines = memory_.unpersisted();
  std::vector<std::byte> image(memory_.used_bytes());
  points_.assign(1, point_of_now());
  counts_.joint = joint_;
  counts_.operations_begun = operations_ + 1;
  for_each_choice(
      choice_, lines.size(), lines.size(), nothing_fixed, std::numeric_limits<std::size_t>::max(), unused,
      [&](std::size_t i) { return static_cast<std::uint32_t>(memory_.log(lines[i]).stores.size()); },
      [&](const std::vector<std::uint32_t>& c) {
        std::uint64_t content = memory_.durable_hash();
        for (std::size_t i = 0; i < lines.size(); ++i)
          content = memory_.hash_with(content, memory_.log(lines[i]), c[i]);
        if (!images_.insert(mix(mix(content, version_), hash))) return;
        memory_.write_image(image.data(), c);
        bytes_.assign(bytes_with(*allocated), std::byte{0});
        std::memcpy(bytes_.data(), image.data(), std::min(bytes_.size(), image.size()));
        open(*allocated, [this](std::span<const indexes::entry> entries) {
          return simulator::the_machine().quietly([&] { return histories_.back()->judge(entries); });
        });
        if (!outcomes_.insert(mix(values_, hash))) return;
        ++counts_.outcomes;
        counts_.fingerprint += mix(values_, hash);
      });
}

void complete_explorer::open(const simulator::block_table::extents& allocated, const index_judge::acceptance& accepts) {
  simulator::machine& machine = simulator::the_machine();
  image_.restore(bytes_.data(), bytes_.size());
  image_.restore_blocks(allocated, bytes_.size());
  values_ = 0;
  ++counts_.openings;
  const auto handler = std::exchange(machine.on_violation, on_machine_violation);
  explorer_on_machine = this;
  machine.dram()->mark();
  machine.tell(this);
  std::string wrong;
  machine.aside(image_, {}, [&] {
    try {
      const std::string found = judge_.judge_completely(options_, splitmix64(seed_ + joint_), accepts);
      machine.quietly([&] { wrong = found; });
    } catch (const std::exception& e) {
      machine.quietly(
          [&] { wrong = std::string("the crash state cannot be opened, or an operation throws: ") + thrown_text(e); });
    }
  });
  machine.tell(nullptr);
  machine.dram()->forget_above();
  explorer_on_machine = nullptr;
  machine.on_violation = handler;
  if (!wrong.empty()) violation(wrong);
}

void complete_explorer::before_read(std::uintptr_t address, std::size_t bytes) {
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(image_.start());
  const std::size_t end = offset + bytes;
  if (course_ != nullptr)
    for (std::size_t at = offset; at < end;) {
      const std::size_t line = at / media::cache_line_bytes;
      const std::size_t until = std::min(end, (line + 1) * media::cache_line_bytes);
      if (const std::uint32_t place = place_of_line_[line]; place != 0) {
        const byte_mask decided = course_->read(place - 1, bytes_of_line(at % media::cache_line_bytes, until - at));
        if (decided != 0) put(image_.start() + line * media::cache_line_bytes, course_->content(place - 1), decided);
      }
      at = until;
    }
  values_ = mix(values_, offset * 64 + bytes);
  for (std::size_t at = offset; at < end; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, image_.start() + at, std::min(end - at, sizeof word));
    values_ = mix(values_, word);
  }
}

void complete_explorer::before_write(std::uintptr_t address, std::size_t bytes) {
  if (course_ == nullptr) return;
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(image_.start());
  for (std::size_t at = offset; at < offset + bytes;) {
    const std::size_t line = at / media::cache_line_bytes;
    const std::size_t until = std::min(offset + bytes, (line + 1) * media::cache_line_bytes);
    if (const std::uint32_t place = place_of_line_[line]; place != 0)
      course_->overwrite(place - 1, bytes_of_line(at % media::cache_line_bytes, until - at));
    at = until;
  }
}

// ---- reports ----

// Describes the state that lost the least, among those that were not told apart.
std::string complete_explorer::circumstances() {
  const recorded_point* point = &points_.front();
  if (course_ != nullptr)
    for (std::size_t p = points_.size(); p > 0; --p)
      if (course_->points().has(p - 1) && (wrong_history_ == any_history || points_[p - 1].history == wrong_history_))
        point = &points_[p - 1];
  const std::string under_way = histories_[point->history]->under_way();
  std::string lost;
  for (std::size_t i = 0; i < point->lines.size(); ++i) {
    const simulator::unpersisted_line& log = point->lines[i].log;
    std::size_t kept = log.stores.size();
    if (course_ == nullptr) {
      kept = choice_[i];
    } else if (const std::uint32_t place = place_of_line_[log.number]; place != 0) {
      const std::vector<line_content> after = contents_of(point->lines[i].durable, &log);
      while (kept > 0 && !course_->agrees(place - 1, after[kept])) --kept;
    }
    if (kept == log.stores.size()) continue;
    lost += std::string("\n  lost: ") + (lost.empty() ? "" : "and ") + std::to_string(log.stores.size() - kept) +
            " store(s) to the line at offset " + std::to_string(std::size_t{log.number} * media::cache_line_bytes) +
            ", first the one at " + simulator::code_address(log.stores[kept].caller);
  }
  if (lost.empty()) lost = "\n  lost: nothing; everything that was stored and written had become durable";
  std::string text =
      std::string("\n  crash ") + (under_way.empty() ? "between operations" : "during " + under_way) + lost;
  if (point->last_caller != nullptr)
    text += "\n  last access before the crash: " + simulator::code_address(point->last_caller);
  return text;
}

void complete_explorer::violation(const std::string& what) {
  if (course_ != nullptr && course_->has_diverged()) end_diverged();
  violated_(what + circumstances());
  std::abort();
}

void complete_explorer::end_if_diverged() {
  const course_search* const course = explorer_on_machine == nullptr ? nullptr : explorer_on_machine->course_;
  if (course != nullptr && course->has_diverged()) end_diverged();
}

void complete_explorer::on_machine_violation(const std::string& what) { explorer_on_machine->violation(what); }

}  // namespace pmlab::verify
