// All that a crash may lose now: lines of the memory, then what the caches of several hosts hold of lines that are not
// coherent, then units of the drives, in one numbering.
//
// A choice says of each place how many of its stores, or versions, the crash keeps.
#pragma once

#include "checker/simulator/machine/hosts.hpp"
#include "checker/simulator/machine/persistent_drive.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/verify/crash_image.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pmlab::verify {

class uncertain_places {
 public:
  using choice = std::span<const std::uint32_t>;

  // Both outlive it.
  uncertain_places(simulator::persistent_memory& memory, std::span<simulator::persistent_drive* const> drives)
      : memory_(memory), drives_(drives) {}

  // The hosts on the memory, which outlive their run.
  void use(const simulator::hosts& hosts) noexcept { hosts_ = &hosts; }
  // Finds what is in their caches now: before anything else at a moment.
  void look() {
    if (hosts_ != nullptr) hosts_->find_cached(cached_);
  }

  // Places in memory.
  [[nodiscard]] std::size_t lines() const noexcept { return logged() + cached_.size(); }
  [[nodiscard]] std::size_t count() const noexcept {
    std::size_t all = lines();
    for (const simulator::persistent_drive* d : drives_) all += d->uncertain().size();
    return all;
  }
  // How many stores or versions the place has.
  [[nodiscard]] std::uint32_t most(std::size_t place) const noexcept {
    if (place < logged()) return static_cast<std::uint32_t>(memory_.log(memory_.unpersisted()[place]).stores.size());
    if (place < lines()) return cached_[place - logged()].count;
    const auto [drive, at] = unit_at(place);
    return static_cast<std::uint32_t>(drive->unit(drive->uncertain()[at]).versions.size());
  }
  // The place of an uncertain unit of a drive.
  [[nodiscard]] std::size_t place_of(const simulator::persistent_drive& drive, std::uint32_t unit) const noexcept;

  // The place of the host's newest store to this line. REQUIRES: it is in its cache, and `look` has seen it there.
  [[nodiscard]] std::size_t place_of(std::uint32_t line, unsigned host) const noexcept;

  // Equal contents, equal hashes.
  [[nodiscard]] std::uint64_t hash(choice c) const;
  // Makes `image` the state of `c`, which stays valid until the next event.
  void write(crash_image& image, choice c) const;
  // The content of each drive.
  [[nodiscard]] std::vector<std::vector<std::byte>> contents_of_drives(choice c) const;
  // The content of the memory, which is `used_bytes()` long.
  void write_memory(std::byte* target, choice c) const;
  // Memory itself has it from now on. No host goes on.
  void crash_memory(choice c) const;

  // A line of text for each place that lost something; code addresses in braces.
  [[nodiscard]] std::string describe_loss(choice c) const;
  // The deaths of hosts, and the last load that missed a store (hosts::story). With one host: "".
  [[nodiscard]] std::string story() const { return hosts_ == nullptr ? std::string() : hosts_->story(); }

 private:
  [[nodiscard]] std::size_t logged() const noexcept { return memory_.unpersisted().size(); }
  [[nodiscard]] choice logged_of(choice c) const noexcept { return c.first(logged()); }
  [[nodiscard]] choice cached_of(choice c) const noexcept { return c.subspan(logged(), cached_.size()); }

  struct unit_place {
    const simulator::persistent_drive* drive;
    std::size_t at;  // in its list of uncertain units
  };
  [[nodiscard]] unit_place unit_at(std::size_t place) const noexcept {
    std::size_t at = place - lines();
    std::size_t d = 0;
    while (at >= drives_[d]->uncertain().size()) at -= drives_[d++]->uncertain().size();
    return {drives_[d], at};
  }
  // `work(drive's number, drive, its part of the choice)`.
  template <class Work>
  void for_each_drive(choice c, Work&& work) const {
    std::size_t from = lines();
    for (std::size_t d = 0; d < drives_.size(); ++d) {
      const std::size_t units = drives_[d]->uncertain().size();
      work(d, *drives_[d], c.subspan(from, units));
      from += units;
    }
  }

  simulator::persistent_memory& memory_;
  std::span<simulator::persistent_drive* const> drives_;
  const simulator::hosts* hosts_ = nullptr;  // null: there is one
  std::vector<simulator::cached_stores> cached_;
};

}  // namespace pmlab::verify
