#include "src/cli/words.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "src/cli/visible.h"
#include "tests/cli/temporary.h"

using namespace sluice::cli;

TEST_CASE("the nearest word is suggested where one is near") {
  const std::vector<std::string> commands = {"convert", "inspect", "verify", "profile", "plan", "run"};
  CHECK(nearest_word("rnu", commands) == "run");
  CHECK(nearest_word("pln", commands) == "plan");
  CHECK(nearest_word("covnert", commands) == "convert");
  CHECK(nearest_word("Verify", commands) == "verify");
  CHECK(nearest_word("launch", commands).empty());
  CHECK(nearest_word("", commands).empty());
  const std::vector<std::string> options = {"--for-budget", "--bound", "--in", "--output-rows"};
  CHECK(nearest_word("--budget", options) == "--for-budget");
  CHECK(nearest_word("--rows", options) == "--output-rows");
  CHECK(suggestion("rnu", commands) == "; did you mean 'run'?");
  CHECK(suggestion("launch", commands).empty());
}

TEST_CASE("a word that stands where none is wanted is said how it was meant") {
  CHECK(hint_for_stray("MiB", false) == "; a size is one word: 64MiB");
  CHECK(hint_for_stray("gb", false) == "; a size is one word: 64MiB");
  CHECK(hint_for_stray("cat.jpg", true) == "; did you mean '--input cat.jpg'?");
  CHECK(hint_for_stray("cat.jpg", false).empty());
  for (const char* const word : {"", "5", "2MiB", "vgg.sluice", "unlimited"}) CHECK(hint_for_stray(word, true).empty());
}

TEST_CASE("a file where a command is wanted has a command that takes it") {
  CHECK(command_for_file("a/m.sluice") == "; did you mean 'sluice run a/m.sluice'?");
  CHECK(command_for_file("m.onnx") == "; did you mean 'sluice convert m.onnx -o m.sluice'?");
  CHECK(command_for_file("run").empty());
  CHECK(name_of_converted("model.bin") == "model.bin.sluice");
}

TEST_CASE("a name from a file ends no line and moves no cursor") {
  CHECK(visible("a\x1b[31mb\r\n\tc\x7f") == "a?[31mb???c?");
  CHECK(visible("gr\xc3\xb6\xc3\x9f"
                "er 1") ==
        "gr\xc3\xb6\xc3\x9f"
        "er 1");
}

TEST_CASE("several values may follow one option") {
  constexpr std::string_view kOptions[] = {"--dim"};
  const auto spread = [&](std::vector<const char*> words) { return spread_values(words, kOptions); };
  using Words = std::vector<std::string>;
  CHECK(spread({"run", "m", "--dim", "N=1", "S=2", "--json"}) == Words{"run", "m", "--dim", "N=1", "--dim", "S=2", "--json"});
  CHECK(spread({"run", "--dim", "N=1", "m.sluice", "S=2"}) == Words{"run", "--dim", "N=1", "m.sluice", "S=2"});
  CHECK(spread({"--dim=N=1", "S=2"}) == Words{"--dim=N=1", "S=2"});
  CHECK(spread({"run", "m", "--dim"}) == Words{"run", "m", "--dim"});
  CHECK(spread({"--dim", "N=1", "-x=2"}) == Words{"--dim", "N=1", "-x=2"});
}

TEST_CASE("a file whose name has an equals sign is not a value") {
  const TemporaryFolder folder;
  const std::string path = folder.path("a=b.sluice");
  std::ofstream(path) << "x";
  constexpr std::string_view kOptions[] = {"--dim"};
  const std::vector<const char*> words = {"--dim", "N=1", path.c_str()};
  CHECK(spread_values(words, kOptions) == std::vector<std::string>{"--dim", "N=1", path});
}
