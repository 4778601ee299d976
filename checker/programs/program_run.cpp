// A run of a program with the recorder in it.
#include "checker/programs/program_run.hpp"

#include "checker/verify/source_lines.hpp"
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <sstream>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;  // NOLINT: the C library's

namespace pmlab::programs {
namespace {

namespace fs = std::filesystem;

// Its pages take room only when they are written.
constexpr std::size_t most_record_bytes = std::size_t{2} << 30;

// Words of a command, with the quotes of a shell.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (any) words.push_back(std::exchange(word, {}));
      any = false;
      continue;
    }
    any = true;
    if (c == '\\' && quote != '\'' && i + 1 < command.size())
      word += command[++i];
    else if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote && quote != 0)
      quote = 0;
    else
      word += c;
  }
  if (quote != 0) throw error("--program '" + command + "' has a quote without its end", "close it");
  if (any) words.push_back(word);
  return words;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  return name;
}

bool is_of_the_system(const std::string& path) { return path.starts_with("/lib") || path.starts_with("/usr/lib"); }

}  // namespace

program_run::program_run(const program_options& options) : words_(words_of(options.command)) {
  if (words_.empty()) throw error("--program names no program", "give a command, such as --program './store {}'");
  for (std::string& word : words_)
    for (std::size_t at = word.find("{}"); at != std::string::npos; at = word.find("{}", at))
      word.replace(at, 2, own_pool_.path());
  file_ = find_program(words_.front());
  check_program();
  run(options);
}

program_run::~program_run() {
  if (record_ != nullptr) ::munmap(record_, record_bytes_);
}

// The recorder is loaded by the dynamic linker.
void program_run::check_program() {
  const descriptor file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0)
    throw error("cannot read the program " + file_ + ": " + std::strerror(errno), remedy_for(errno, "check the path"));
  if (!S_ISREG(status.st_mode)) throw error(file_ + " is no program", "name an executable file");
  if (::access(file_.c_str(), X_OK) != 0) throw error(file_ + " is not executable", "name a program");
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0)
    throw error(file_ + " changes its user, and no recorder can be loaded into it", "take a copy of it");
  std::array<char, 4096> part{};
  const ssize_t got = ::pread(file.get(), part.data(), part.size(), 0);
  Elf64_Ehdr head{};
  if (got >= static_cast<ssize_t>(sizeof(head))) std::memcpy(&head, part.data(), sizeof(head));
  if (got >= 2 && part[0] == '#' && part[1] == '!')
    throw error(file_ + " is a script", "name the program that it runs, with its arguments");
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_machine != EM_X86_64)
    throw error(file_ + " is no program of this machine", "build it for x86-64 Linux");
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const std::size_t at = head.e_phoff + i * head.e_phentsize;
    if (at + sizeof(segment) > part.size()) break;
    std::memcpy(&segment, part.data() + at, sizeof(segment));
    if (segment.p_type == PT_INTERP) return;
  }
  throw error(file_ + " is linked statically, and no recorder can be loaded into it", "link it with shared libraries");
}

void program_run::run(const program_options& options) {
  if (::access(options.recorder.c_str(), R_OK) != 0)
    throw error("there is no recorder at " + options.recorder, "build or install all of pmlab");
  {
    const descriptor file(::open(record_file_.path().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.is_open() || ::ftruncate(file.get(), static_cast<off_t>(most_record_bytes)) != 0)
      throw error("cannot make " + record_file_.path() + ": " + std::strerror(errno),
                  "make room there, or name another folder by TMPDIR");
    void* const at =
        ::mmap(nullptr, most_record_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
    if (at == MAP_FAILED) throw error("cannot map " + record_file_.path(), "allow more virtual memory (ulimit -v)");
    record_ = static_cast<std::byte*>(at);
    record_bytes_ = most_record_bytes;
  }
  auto* const head = new (record_) record_head;
  head->capacity = most_record_bytes;
  head->used.store(first_entry);
  head->magic = record_magic;

  std::vector<std::string> variables;
  for (char** v = environ; *v != nullptr; ++v) {
    const std::string_view one(*v);
    if (!one.starts_with("LD_PRELOAD=") && !one.starts_with("GLIBC_TUNABLES=") &&
        !one.starts_with("PMEM_IS_PMEM_FORCE="))
      variables.emplace_back(one);
  }
  variables.push_back("LD_PRELOAD=" + options.recorder);
  variables.push_back(std::string(record_variable) + "=" + record_file_.path());
  variables.push_back(std::string(base_variable) + "=" + base_.path());
  // A file that is no DAX file is treated as one.
  variables.emplace_back("PMEM_IS_PMEM_FORCE=1");
  // `rep movsb` stores, and so traps, byte by byte.
  variables.emplace_back(
      "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=0x40000000:glibc.cpu.x86_rep_stosb_threshold=0x40000000");
  std::vector<char*> environment, arguments;
  for (std::string& v : variables) environment.push_back(v.data());
  environment.push_back(nullptr);
  for (std::string& w : words_) arguments.push_back(w.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output_.path().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, file_.c_str(), &files, &attributes, arguments.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw error("cannot run " + file_ + ": " + std::strerror(failed), "name a program that runs");

  const auto start = std::chrono::steady_clock::now();
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    constexpr useconds_t between = 2000;
    ::usleep(between);
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < options.seconds) continue;
    ::kill(-child, SIGKILL);
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    std::ostringstream seconds;
    seconds << options.seconds;
    throw error("the program did not end within " + seconds.str() + " s: " + options.command,
                "let it do less: each of its stores to the pool takes about 20 us");
  }
  read_record();
  const std::string said = verify::last_part(output_.path());
  const std::string last = said.empty() ? "" : ", whose last line is: " + said.substr(said.find_last_of('\n') + 1);
  if (WIFSIGNALED(status))
    throw error("the program died of signal " + std::to_string(WTERMSIG(status)) + " (" +
                    ::strsignal(WTERMSIG(status)) + "), and no crash of it was judged: " + options.command + last,
                "give a run that succeeds");
  if (WEXITSTATUS(status) != 0)
    throw error("the program ended with status " + std::to_string(WEXITSTATUS(status)) +
                    ", and no crash of it was judged: " + options.command + last,
                "give a run that succeeds, with status 0");
  if (pool_bytes_ == 0)
    throw error("the program maps no pool: it opens no file for shared writing in memory: " + options.command,
                "name a program whose persistent memory is a file (libpmemobj, libpmem, or mmap)");
  if (steps_.empty() || steps_.back().head->what != event::end)
    throw error("the record of the program has no end: " + options.command,
                "let it end by exit, or by return from main");
}

void program_run::read_record() {
  const auto* const head = reinterpret_cast<const record_head*>(record_);
  for (std::uint64_t at = first_entry, end = head->used.load(); at < end;) {
    const auto* const e = reinterpret_cast<const entry*>(record_ + at);
    const std::byte* const payload = record_ + at + sizeof(entry);
    at += sizeof(entry) + (std::uint64_t{e->bytes} + 7) / 8 * 8;
    const step one{e, payload};
    switch (e->what) {
      case event::stack: stacks_[e->stack] = one.words(); break;
      case event::object: objects_.push_back({e->at, e->at + e->length, e->stack == 1, std::string(one.text())}); break;
      case event::pool: pool_bytes_ = e->at; break;
      case event::refusal: {
        const std::string text(one.text());
        const std::size_t line = text.find('\n');
        throw error("the program cannot be verified: " + text.substr(0, line), text.substr(line + 1));
      }
      default: steps_.push_back(one);
    }
  }
}

std::string program_run::place_of(std::uint32_t stack, std::size_t most) const {
  const auto found = stacks_.find(stack);
  if (found == stacks_.end()) return "an unknown place";
  std::string text, library, bare;
  std::size_t named = 0;
  for (const std::uint64_t address : found->second) {
    const auto place = std::find_if(objects_.begin(), objects_.end(),
                                    [&](const object& o) { return address > o.begin && address <= o.end; });
    if (place == objects_.end()) continue;
    const std::uintptr_t offset = place->is_absolute ? address : address - place->begin;
    const std::string short_name = fs::path(place->path).filename();
    if (is_of_the_system(place->path)) {
      // The library that the program called, if the store is not its own.
      if (named == 0 && bare.empty()) library = short_name;
      continue;
    }
    const std::vector<std::string> names = verify::functions_at(place->path, {offset});
    const std::string name = names.empty() ? "" : names.front();
    if (name.empty()) {
      // Without debug information, or of a header of the system.
      std::ostringstream address_in_file;
      address_in_file << short_name << "+0x" << std::hex << offset - 1;
      if (bare.empty()) bare = address_in_file.str();
      continue;
    }
    text += (named == 0 ? "" : ", called by ") + name;
    if (++named == most || name.starts_with("main (")) break;
  }
  if (named == 0 && !bare.empty()) text = bare;
  if (text.empty()) return library.empty() ? "an unknown place" : "code of " + library;
  return library.empty() ? text : text + " in " + library;
}

}  // namespace pmlab::programs
