// Runs every form and reports the accesses that the instrument saw:
//     store  FORM  VERDICT  LEAST          with tabs between them; status 1 if any form was seen less than it must be
//     flush  FORM  VERDICT
#include "checker/tests/simulator/store_forms/form.hpp"
#include "checker/tests/simulator/store_forms/recorder.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string_view>

#include <cpuid.h>

extern "C" {
alignas(64) char forms_source[forms::area_bytes];
alignas(64) char forms_target[forms::area_bytes];

struct register_state {
  std::uint64_t general[14];
  std::uint64_t flags;
  std::uint64_t unused;
  std::uint64_t vectors[16 * 4];
};
void registers_across_flush(register_state before_and_after[2]);
void vectors_across_flush(const char* before, char* after);
void x87_across_flush(const long double* before, long double* after);
const char* flush_below_stack_pointer();
const char* flush_at_stack_pointer();
const char* flush_with_stack_pointer_and_index();
const char* flush_of_rsi();
const char* flush_in_thread_block();
}

namespace {

using forms::record;
using forms::verdict;

bool has(std::string_view needs) {
  if (needs.empty()) return true;
  if (needs == "avx") return __builtin_cpu_supports("avx");
  if (needs == "avx2") return __builtin_cpu_supports("avx2");
  if (needs == "avx512f") return __builtin_cpu_supports("avx512f");
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return needs == "movdir64b" && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 28 & 1) != 0;
}

const char* name(verdict v) {
  constexpr std::array names{"not run", "not seen", "seen", "seen with value"};
  return names[static_cast<std::size_t>(v)];
}

void prepare() {
  for (std::size_t i = 0; i < forms::area_bytes; ++i) {
    forms_source[i] = static_cast<char>(i * 7 + 1);
    forms_target[i] = static_cast<char>(0xee - i % 61);
  }
  forms::records().clear();
  forms::records().reserve(4096);
}

bool covers(const record* r, record::what kind, std::size_t i) {
  return r != nullptr && r->kind == kind && forms_target + i >= r->address && forms_target + i < r->address + r->bytes;
}

// The weakest of the verdicts on the changes of bytes. A store is seen if its report was the last thing before it: by
// the next report it has happened, and its value is there to be taken.
verdict judge(const forms::store_form& form) {
  if (!has(form.needs)) return verdict::not_run;
  prepare();
  std::array<char, forms::area_bytes> then;
  std::memcpy(then.data(), forms_target, then.size());
  form.store(forms_target);
  std::vector<record> all = forms::records();
  record& end = all.emplace_back();
  std::memcpy(end.target_then.data(), forms_target, then.size());

  verdict weakest = verdict::seen_with_value;
  bool changed = false;
  const record* before = nullptr;
  for (const record& r : all) {
    for (std::size_t i = 0; i < then.size(); ++i) {
      if (then[i] == r.target_then[i]) continue;
      changed = true;
      const bool with_value = covers(&r, record::what::store_with_value, i);
      const bool seen = covers(before, record::what::store, i);
      weakest = std::min(weakest, with_value ? verdict::seen_with_value : seen ? verdict::seen : verdict::not_seen);
    }
    then = r.target_then;
    before = &r;
  }
  if (!changed) std::cerr << form.name << ": changed nothing, so this test shows nothing\n";
  return changed ? weakest : verdict::not_run;
}

bool check_stores() {
  bool good = true;
  for (const forms::store_form& form : forms::store_forms()) {
    const verdict v = judge(form);
#ifdef FORMS_BY_CLANG
    const verdict least = form.by_clang;
#else
    const verdict least = form.by_gnu;
#endif
    const bool missed = v < least && (v != verdict::not_run || form.needs[0] == '\0');
    good &= !missed;
    std::cout << "store\t" << form.name << '\t' << name(v) << '\t' << name(least) << '\n';
    if (missed) std::cerr << form.name << ": " << name(v) << ", and must be " << name(least) << '\n';
  }
  return good;
}

bool is(const record& r, const forms::event& wanted) {
  using what = forms::event::what;
  if (wanted.kind == what::sfence || wanted.kind == what::mfence)
    return r.kind == record::what::fence && r.bytes == (wanted.kind == what::mfence ? 1U : 0U);
  return r.kind == record::what::flush && r.bytes == static_cast<std::size_t>(wanted.kind) &&
         r.address == forms_target + wanted.offset;
}

bool report(const char* form, bool good) {
  std::cout << "flush\t" << form << '\t' << (good ? "seen" : "wrong") << '\n';
  if (!good) std::cerr << form << ": not reported, or with another address\n";
  return good;
}

bool check_flushes() {
  bool good = true;
  for (const forms::flush_form& form : forms::flush_forms()) {
    prepare();
    form.run(forms_target);
    std::vector<record> all = forms::records();
    std::erase_if(all, [](const record& r) { return r.kind != record::what::flush && r.kind != record::what::fence; });
    bool same = all.size() == form.events;
    for (std::size_t i = 0; same && i < all.size(); ++i) same = is(all[i], form.expected[i]);
    good &= report(form.name, same);
  }
  return good;
}

bool flushes_its_address(const char* (*flush)()) {
  prepare();
  const char* const address = flush();
  const auto& all = forms::records();
  return all.size() == 1 && all[0].kind == record::what::flush && all[0].address == address;
}

bool check_operands() {
  bool good = report("operand `72(%rsp)`", flushes_its_address(flush_below_stack_pointer));
  good &= report("operand `(%rsp)`", flushes_its_address(flush_at_stack_pointer));
  good &= report("operand `8+8(%rsp,%rdi,8)`", flushes_its_address(flush_with_stack_pointer_and_index));
  good &= report("operand `5(%rsi)`", flushes_its_address(flush_of_rsi));
  good &= report("operand `%fs:x@tpoff`", flushes_its_address(flush_in_thread_block));
  return good;
}

// Everything must be as it was: with the carry flag and the direction flag set, and without.
bool check_registers() {
  if (!has("avx")) return true;
  bool good = true;
  constexpr std::uint64_t changeable = 0xcd5;  // carry, parity, adjust, zero, sign, direction, overflow
  for (const std::uint64_t flags : {std::uint64_t{0x202}, 0x202 | changeable, std::uint64_t{0x203}}) {
    prepare();
    register_state states[2] = {};
    std::uint64_t next = 0x1234567890abcdefU;
    const auto random = [&] { return next = next * 6364136223846793005U + 1442695040888963407U; };
    for (auto& word : states[0].general) word = random();
    for (auto& word : states[0].vectors) word = random();
    states[0].flags = flags;
    registers_across_flush(states);
    states[0].flags &= changeable;
    states[1].flags &= changeable;
    good &= forms::records().size() == 4 && std::memcmp(&states[0], &states[1], sizeof states[0]) == 0;
  }
  good = report("15 integer registers, 16 ymm registers and the flags, unchanged", good);
  if (!has("avx512f")) return good;
  std::array<char, 2048 + 64> before;
  std::array<char, 2048 + 64> after{};
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<char>(i % 251 + i / 251);
  vectors_across_flush(before.data(), after.data());
  for (std::size_t k = 0; k < 8; ++k)  // 16 bits of each mask, and none of k0
    for (std::size_t i = k == 0 ? 0 : 2; i < 8; ++i) before[2048 + 8 * k + i] = after[2048 + 8 * k + i] = 0;
  return report("32 zmm registers and 7 masks, unchanged", before == after) && good;
}

bool check_x87() {
  prepare();
  const long double before = 1.0L / static_cast<long double>(forms_source[0] + 2);
  long double after = 0;
  x87_across_flush(&before, &after);
  return report("x87 state, unchanged", before == after);
}

// A debugger, and a report of a store's place, finds the way back through a stub.
bool check_way_back() {
  bool good = true;
  for (const forms::flush_form& form : forms::flush_forms()) {
    prepare();
    form.run(forms_target);
    for (const record& r : forms::records())
      if (r.kind == record::what::flush || r.kind == record::what::fence) good &= r.frames_beyond_caller >= 2;
  }
  return report("unwinding from every form of flush to main", good);
}

}  // namespace

int main() {
  std::cout.sync_with_stdio(true);
  bool good = check_stores();
  good &= check_flushes();
  good &= check_operands();
  good &= check_registers();
  good &= check_x87();
  good &= check_way_back();
  return good ? 0 : 1;
}
