// Options, the table of passes, and pipeline texts.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "fx/passes/pass.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

std::vector<std::string> texts(const std::vector<Pass>& passes) {
  std::vector<std::string> out;
  for (const Pass& pass : passes) out.push_back(pass.str());
  return out;
}

TEST(PassTable, IsSortedAndDescribed) {
  ASSERT_FALSE(all_passes().empty());
  std::string_view previous;
  for (const PassInfo& info : all_passes()) {
    EXPECT_LT(previous, info.name);
    previous = info.name;
    EXPECT_FALSE(info.summary.empty());
    EXPECT_NE(info.summary.back(), '.');
    EXPECT_EQ(&find_pass(info.name), &info);
    std::set<std::string_view> names;
    PassOptions options(info);
    for (const PassOptionInfo& option : info.options) {
      EXPECT_TRUE(names.insert(option.name).second);
      EXPECT_FALSE(option.summary.empty());
      EXPECT_NO_THROW(options.set(option.name, option.default_text)) << info.name << option.name;
    }
    EXPECT_EQ(options.str(), "");
  }
}

// A pass costs a text test: there is a file that runs it alone or first.
TEST(PassTable, EachPassHasATextTest) {
  std::set<std::string> run;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(FXCPP_SOURCE_DIR) / "tests/text")) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("# RUN: ")) {
        std::istringstream words(line.substr(7));
        for (std::string item; std::getline(words, item, ',');)
          run.insert(item.substr(item.find_first_not_of(' '), item.find('(')));
      }
  }
  for (const PassInfo& info : all_passes())
    EXPECT_TRUE(run.contains(std::string(info.name))) << info.name;
}

TEST(PassTable, UnknownPass) {
  EXPECT_FX_ERROR(find_pass("dcee"), PassError, kUnknownPass,
                  "there is no pass 'dcee'; did you mean 'dce'?");
  EXPECT_FX_ERROR(find_pass("something_else_entirely"), PassError, kUnknownPass,
                  "there is no pass 'something_else_entirely'. To mend it");
}

TEST(PassOptions, ValuesAndErrors) {
  PassOptions options(find_pass("constant_fold"));
  EXPECT_EQ(options.get_int("max_bytes"), 64 << 20);
  EXPECT_FALSE(options.get_bool("fold_outputs"));
  options.set("max_bytes", "12");
  options.set("fold_outputs", "true");
  EXPECT_EQ(options.get_int("max_bytes"), 12);
  EXPECT_EQ(options.str(), "(max_bytes=12, fold_outputs=true)");
  EXPECT_FX_ERROR(options.set("max_byte", "1"), PassError, kBadPassOption,
                  "the pass 'constant_fold' has no option 'max_byte'; did you mean 'max_bytes'?");
  EXPECT_FX_ERROR(
      options.set("max_bytes", "many"), PassError, kBadPassOption,
      "the option 'max_bytes' of the pass 'constant_fold' takes an integer, found 'many'");
  EXPECT_FX_ERROR(options.set("max_bytes", "1.5"), PassError, kBadPassOption, "takes an integer");
  EXPECT_FX_ERROR(options.set("fold_outputs", "yes"), PassError, kBadPassOption,
                  "takes true or false, found 'yes'");
  EXPECT_EQ(options.get_int("max_bytes"), 12);
  // Asking for what is not declared is a bug of the pass.
  EXPECT_THROW(options.get_bool("max_bytes"), InternalError);
  EXPECT_THROW(options.get_int("nothing"), InternalError);
}

TEST(Pipeline, Texts) {
  EXPECT_TRUE(parse_pipeline("").empty());
  EXPECT_TRUE(parse_pipeline("  ").empty());
  EXPECT_EQ(texts(parse_pipeline("dce")), std::vector<std::string>{"dce"});
  EXPECT_EQ(texts(parse_pipeline("dce(),cse")), (std::vector<std::string>{"dce", "cse"}));
  EXPECT_EQ(texts(parse_pipeline(
                " dce ,constant_fold( max_bytes = 1048576 , fold_outputs ), cse,fuse_conv_bn ")),
            (std::vector<std::string>{"dce", "constant_fold(max_bytes=1048576, fold_outputs=true)",
                                      "cse", "fuse_conv_bn"}));
  // What str() gives reads back.
  for (const Pass& pass : parse_pipeline("dce(impure_random=false),remove_noops(static_shapes)"))
    EXPECT_EQ(texts(parse_pipeline(pass.str())), std::vector<std::string>{pass.str()});
}

TEST(Pipeline, Errors) {
  EXPECT_FX_ERROR(parse_pipeline("dce,cs"), PassError, kUnknownPass, "did you mean 'cse'?");
  EXPECT_FX_ERROR(
      parse_pipeline("dce,"), PassError, kBadPassOption,
      "cannot read the pipeline 'dce,': wanted the name of a pass at character 5, found "
      "the end");
  EXPECT_FX_ERROR(parse_pipeline(",dce"), PassError, kBadPassOption,
                  "wanted the name of a pass at character 1, found ','");
  EXPECT_FX_ERROR(parse_pipeline("dce cse"), PassError, kBadPassOption,
                  "wanted ',' between passes at character 5, found 'c'");
  EXPECT_FX_ERROR(parse_pipeline("constant_fold(max_bytes=1"), PassError, kBadPassOption,
                  "wanted ',' or ')'");
  EXPECT_FX_ERROR(parse_pipeline("constant_fold(=1)"), PassError, kBadPassOption,
                  "wanted the name of an option");
  EXPECT_FX_ERROR(parse_pipeline("constant_fold(max_bytes)"), PassError, kBadPassOption,
                  "takes an integer, found 'true'");
  EXPECT_FX_ERROR(parse_pipeline("constant_fold(max_bytes=)"), PassError, kBadPassOption,
                  "takes an integer, found ''");
}

TEST(PassClass, FunctionsOfEachKind) {
  GraphModule module;
  int calls = 0;
  const Pass silent("silent", [&](GraphModule&) { ++calls; });
  const Pass claiming("claiming", [&](GraphModule&) { return ++calls > 0; });
  const Pass full("full",
                  [&](GraphModule&) { return PassResult{.changed = false, .rewrites = 7}; });
  EXPECT_FALSE(silent(module).has_value());
  EXPECT_TRUE(claiming(module)->changed);
  EXPECT_EQ(full(module)->rewrites, 7);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(full.str(), "full");
  EXPECT_EQ(full.info(), nullptr);
}

}  // namespace
}  // namespace fx
