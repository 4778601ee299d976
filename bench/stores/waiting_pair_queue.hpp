// The queue of a store of pairs whose calls wait: an operation is done when it has been started.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include "bench/stores/pair_subject.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The one of `drives` that has a key.
[[nodiscard]] inline std::size_t drive_of(std::string_view key, std::size_t drives) noexcept {
  return drives == 1 ? 0 : hash_of_bytes(key.data(), key.size(), 0) % drives;
}

// Copies of pairs.
class pair_list {
 public:
  void clear() {
    texts_.clear();
    places_.clear();
  }
  void add(std::string_view key, std::string_view value) {
    places_.push_back({texts_.size(), key.size(), value.size()});
    texts_.append(key).append(value);
  }
  // The first `most` in the order of keys.
  void sort(std::size_t most) {
    std::ranges::sort(places_, {}, [&](const place& p) { return std::string_view(texts_).substr(p.at, p.key_bytes); });
    if (places_.size() > most) places_.resize(most);
  }
  // Until the next change.
  [[nodiscard]] std::span<const pair> view() {
    pairs_.clear();
    for (const place& p : places_)
      pairs_.push_back({std::string_view(texts_).substr(p.at, p.key_bytes),
                        std::as_bytes(std::span(texts_).subspan(p.at + p.key_bytes, p.value_bytes))});
    return pairs_;
  }

 private:
  struct place {
    std::size_t at, key_bytes, value_bytes;
  };
  std::string texts_;
  std::vector<place> places_;
  std::vector<pair> pairs_;
};

// `Session` has the store's calls for one thread:
//   found_value                                      holds the value of a get
//   put(key, value), erase(key) -> std::errc
//   get(key, found_value&, answer&)                  sets found, value and error of the answer
//   scan(from, most, pair_list&) -> std::errc
template <class Session>
class waiting_pair_queue final : public pair_queue {
 public:
  waiting_pair_queue(Session session, unsigned depth) : session_(std::move(session)), slots_(depth) {
    for (slot& s : slots_) free_.push_back(&s);
  }

  void put(std::string_view key, std::span<const std::byte> value, std::uint64_t tag) override {
    begin(tag).answer.error = session_.put(key, text_of(value));
  }
  void get(std::string_view key, std::uint64_t tag) override {
    slot& s = begin(tag);
    session_.get(key, s.value, s.answer);
  }
  void erase(std::string_view key, std::uint64_t tag) override { begin(tag).answer.error = session_.erase(key); }
  void scan(std::string_view from, unsigned most, std::uint64_t tag) override {
    slot& s = begin(tag);
    s.pairs.clear();
    s.answer.error = session_.scan(from, most, s.pairs);
    s.answer.pairs = s.pairs.view();
  }

  [[nodiscard]] std::size_t reap(std::span<pair_answer> answers, std::size_t /*at_least*/) override {
    take_back();
    const std::size_t count = std::min(answers.size(), done_.size());
    for (std::size_t i = 0; i < count; ++i) {
      answers[i] = done_.front()->answer;
      reaped_.push_back(done_.front());
      done_.pop_front();
    }
    return count;
  }

 private:
  struct slot {
    pair_answer answer;
    typename Session::found_value value;
    pair_list pairs;
  };

  [[nodiscard]] slot& begin(std::uint64_t tag) {
    take_back();
    if (free_.empty()) throw error("too many operations are under way", "report this as a defect of the benchmark");
    slot& s = *free_.back();
    free_.pop_back();
    done_.push_back(&s);
    s.answer = {.tag = tag};
    return s;
  }
  // What was reaped stays until the next call.
  void take_back() {
    free_.insert(free_.end(), reaped_.begin(), reaped_.end());
    reaped_.clear();
  }

  Session session_;
  std::vector<slot> slots_;
  std::vector<slot*> free_, reaped_;
  std::deque<slot*> done_;
};

}  // namespace pmlab::store_bench
