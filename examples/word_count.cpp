// How often does each word occur? A skip list keeps words in order, so that those with one beginning are neighbours.
// In DRAM, with nothing but the standard library.
//
//   word_count FILE           every word of the text, in byte order, with its count ("-": standard input)
//   word_count FILE BEGINNING  only the words that begin so
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/strings/string_index.hpp>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

namespace {

using pmlab::media::dram;
using counts_of_words = pmlab::strings::string_index<dram, pmlab::indexes::skip_list<dram>>;

// A word: letters and digits, and every byte beyond ASCII, which are parts of letters.
bool is_part_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0; }

void count_words(std::istream& text, counts_of_words& counts) {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) counts.upsert(word, counts.find(word).value_or(0) + 1);
    word.clear();
  };
  for (char c = 0; text.get(c);) {
    if (is_part_of_word(c))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else
      end_word();
  }
  end_word();
}

int run(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::cerr << "usage: word_count FILE [BEGINNING]\n";
    return 2;
  }
  const std::string path = arguments[1];
  const std::string_view beginning = count == 3 ? arguments[2] : "";
  std::ifstream file;
  if (path != "-") file.open(path);
  if (!file) throw pmlab::error("cannot read " + path, "name a text, or - for the standard input");

  dram memory;
  auto counts = counts_of_words::open(memory, "words");
  count_words(path == "-" ? std::cin : file, counts);

  std::uint64_t shown = 0;
  // A few at a time from where the last ones ended; the least word behind `word` is `word` with a zero behind it.
  constexpr std::size_t at_a_time = 100;
  std::string from(beginning);
  for (bool more = true; more;) {
    std::string last;
    more = counts.scan(from, at_a_time,
                       [&](std::string_view word, std::uint64_t times) {
                         last = word;
                         if (!word.starts_with(beginning)) return;
                         std::cout << times << ' ' << word << '\n';
                         ++shown;
                       }) == at_a_time &&
           last.starts_with(beginning);
    from = last + '\0';
  }
  std::cout << shown << " words\n";
  return 0;
}

}  // namespace

int main(int count, char** arguments) try { return run(count, arguments); } catch (const std::exception& e) {
  std::cerr << "word_count: error: " << e.what() << '\n';
  return 1;
}
