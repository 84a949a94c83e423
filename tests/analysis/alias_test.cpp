// Alias analysis: which values share memory, who writes where.

#include "fx/analysis/alias.h"

#include <torch/torch.h>

#include "fx/graph/graph_module.h"
#include "fx/graph/text.h"
#include "fx/ops/call.h"
#include "fx/ops/effects.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

class Aliases {
 public:
  explicit Aliases(const std::string& text) : module_(parse_text("fx 1\n" + text)) {}
  GraphModule& module() { return module_; }
  const Node& node(std::string_view name) const { return *module_.graph().find_node(name); }
  AliasAnalysis analysis() const { return AliasAnalysis(module_.graph()); }
  bool share(std::string_view a, std::string_view b) const {
    return analysis().may_alias(node(a), node(b));
  }
  // Names of the values that running `writer` may change.
  Names written_by(std::string_view writer) const {
    const AliasAnalysis aliases = analysis();
    Names out;
    for (const Node& value : module_.graph().nodes())
      for (AliasAnalysis::Set set : aliases.writes(node(writer)))
        if (!value.is_output() && aliases.set_of(value) == set) out.emplace_back(value.name());
    return out;
  }

 private:
  GraphModule module_;
};

TEST(Alias, ViewsShareAndComputationsDoNot) {
  const Aliases a(R"(
%x = placeholder[target=x]
%fresh = call_function[target=aten::relu](args = (%x,))
%view = call_function[target=aten::view](args = (%fresh, [-1]))
%turned = call_function[target=aten::t](args = (%fresh,))
%parts = call_function[target=aten::split.Tensor](args = (%fresh, 2))
%part = call_function[target=operator.getitem](args = (%parts, 0))
%other = call_function[target=aten::cos](args = (%part,))
%method = call_method[target=transpose](args = (%fresh, 0, 1))
%size = call_method[target=size](args = (%fresh, 0))
%maybe = call_function[target=aten::contiguous](args = (%fresh,))
%dropped = call_function[target=aten::dropout](args = (%fresh, 0.5, False))
%copied = call_function[target=aten::clone](args = (%fresh,))
%sum_1 = call_function[target=operator.add](args = (%fresh, 1))
return %other
)");
  for (const char* name : {"view", "turned", "parts", "part", "method", "maybe", "dropped"})
    EXPECT_TRUE(a.share("fresh", name)) << name;
  for (const char* name : {"x", "other", "size", "copied", "sum_1"})
    EXPECT_FALSE(a.share("fresh", name)) << name;
  EXPECT_FALSE(a.analysis().has_writes());
}

TEST(Alias, WritesGoThroughViews) {
  const Aliases a(R"(
%x = placeholder[target=x]
%fresh = call_function[target=aten::relu](args = (%x,))
%row = call_function[target=aten::select.int](args = (%fresh, 0, 0))
%write = call_function[target=aten::add_.Tensor](args = (%row, 1))
%other = call_function[target=aten::relu](args = (%x,))
return %fresh
)");
  EXPECT_EQ(a.written_by("write"), (Names{"fresh", "row", "write"}));
  const AliasAnalysis aliases = a.analysis();
  EXPECT_TRUE(aliases.is_written(a.node("fresh")));
  EXPECT_FALSE(aliases.is_written(a.node("other")));
  EXPECT_FALSE(aliases.is_written(a.node("x")));
  EXPECT_FALSE(aliases.writes_inputs());
  EXPECT_TRUE(aliases.writes(a.node("other")).empty());
}

TEST(Alias, KindsOfWrites) {
  const Aliases a(R"(
%x = placeholder[target=x]
%p = call_function[target=aten::relu](args = (%x,))
%q = call_function[target=aten::relu](args = (%x,))
%r = call_function[target=aten::relu](args = (%x,))
%out = call_function[target=aten::add.out](args = (%p, %p), kwargs = {out: %q})
%add = call_function[target=aten::add.Tensor](args = (%p, %p))
%method = call_method[target=mul_](args = (%p, 2))
%iadd = call_function[target=operator.iadd](args = (%r, 1))
%setitem = call_function[target=operator.setitem](args = (%r, 0, 1))
%many = call_function[target=aten::_foreach_add_.Scalar](args = ([%p, %q], 1))
%python = call_function[target=torch.add](args = (%p, %p), kwargs = {out: %q})
%unknown = call_function[target=nobody::knows](args = (%r,))
return %add
)");
  EXPECT_EQ(a.written_by("out"), (Names{"q", "out", "python"}));
  EXPECT_EQ(a.written_by("add"), Names{});
  EXPECT_EQ(a.written_by("method"), (Names{"p", "method"}));
  EXPECT_EQ(a.written_by("iadd"), (Names{"r", "iadd", "setitem", "unknown"}));
  EXPECT_EQ(a.written_by("setitem"), (Names{"r", "iadd", "setitem", "unknown"}));
  EXPECT_THAT(a.written_by("many"), testing::IsSupersetOf(Names{"p", "q"}));
  EXPECT_THAT(a.written_by("python"), testing::Contains("q"));
  // Of an operator that this process does not know, anything must be expected.
  EXPECT_THAT(a.written_by("unknown"), testing::IsSupersetOf(Names{"x", "r"}));
}

TEST(Alias, BatchNormWritesItsStatisticsInTraining) {
  const std::string head =
      "%x = placeholder[target=x]\n%z = call_function[target=aten::relu](args = (%x,))\n"
      "%m = call_function[target=aten::relu](args = (%x,))\n%v = "
      "call_function[target=aten::relu](args = (%x,))\n%bn = "
      "call_function[target=aten::batch_norm](args = (%z, None, None, %m, %v, ";
  const Aliases training(head + "True, 0.1, 1e-05, False))\nreturn %bn\n");
  EXPECT_EQ(training.written_by("bn"), (Names{"m", "v"}));
  const Aliases eval(head + "False, 0.1, 1e-05, False))\nreturn %bn\n");
  EXPECT_EQ(eval.written_by("bn"), Names{});
}

TEST(Alias, InputsAndAttributes) {
  Aliases a(R"(
%x = placeholder[target=x]
%y = placeholder[target=y]
%w = get_attr[target=w]
%tied = get_attr[target=tied]
%row = get_attr[target=row]
%other = get_attr[target=other]
%fresh = call_function[target=aten::relu](args = (%w,))
%write = call_method[target=add_](args = (%w, 1))
return %fresh
)");
  const at::Tensor w = torch::ones({2, 2});
  a.module().set_buffer("w", w);
  a.module().set_buffer("tied", w);
  a.module().set_constant("row", w[0]);
  a.module().set_buffer("other", torch::ones(2));
  EXPECT_TRUE(a.share("x", "y"));
  EXPECT_TRUE(a.share("x", "w"));
  EXPECT_TRUE(a.share("w", "tied"));
  EXPECT_TRUE(a.share("w", "row"));
  EXPECT_FALSE(a.share("w", "other"));
  EXPECT_FALSE(a.share("w", "fresh"));
  // An input may be a view of w, but not of other.
  EXPECT_EQ(a.written_by("write"), (Names{"x", "y", "w", "tied", "row", "write"}));
  EXPECT_TRUE(a.analysis().writes_attributes());
  EXPECT_TRUE(a.analysis().writes_attribute(a.node("write")));
  EXPECT_TRUE(a.analysis().is_external(a.node("row")));
  EXPECT_FALSE(a.analysis().is_external(a.node("fresh")));
}

TEST(Alias, WritingToAnInputMayChangeEveryAttribute) {
  Aliases a(
      "%x = placeholder[target=x]\n%w = get_attr[target=w]\n%write = call_method[target=add_](args "
      "= (%x, 1))\nreturn %w\n");
  a.module().set_buffer("w", torch::ones(2));
  EXPECT_EQ(a.written_by("write"), (Names{"x", "w", "write"}));
  EXPECT_TRUE(a.analysis().writes_inputs());
}

TEST(Alias, Modules) {
  Aliases a(R"(
%x = placeholder[target=x]
%z = call_function[target=aten::relu](args = (%x,))
%lin = call_module[target=lin](args = (%z,))
%flat = call_module[target=flat](args = (%z,))
%act = call_module[target=act](args = (%lin,))
%bn = call_module[target=bn](args = (%z,))
%mean = get_attr[target=bn.running_mean]
return (%act, %bn)
)");
  a.module().set_submodule("lin", std::make_shared<torch::nn::LinearImpl>(2, 2));
  a.module().set_submodule("flat", std::make_shared<torch::nn::FlattenImpl>());
  a.module().set_submodule("act",
                           std::make_shared<torch::nn::ReLUImpl>(torch::nn::ReLUOptions(true)));
  a.module().set_submodule("bn", std::make_shared<torch::nn::BatchNorm1dImpl>(2));
  EXPECT_FALSE(a.share("lin", "z"));
  EXPECT_TRUE(a.share("flat", "z"));
  EXPECT_TRUE(a.share("act", "lin"));
  EXPECT_EQ(a.written_by("act"), (Names{"lin", "act"}));
  EXPECT_EQ(a.written_by("bn"), (Names{"x", "mean"}));  // x may be a view of it
  a.module().eval();
  EXPECT_EQ(a.written_by("bn"), Names{});
}

TEST(Alias, NestedGraphs) {
  for (const bool writes : {true, false}) {
    Aliases a(
        "%x = placeholder[target=x]\n%z = call_function[target=aten::relu](args = (%x,))\n%m = "
        "call_module[target=inner](args = (%z,))\nreturn %m\n");
    a.module().set_submodule(
        "inner",
        std::make_shared<GraphModule>(parse_text(
            std::string("fx 1\n%p = placeholder[target=p]\n%r = call_function[target=aten::relu") +
            (writes ? "_" : "") + "](args = (%p,))\nreturn %r\n")));
    EXPECT_TRUE(a.share("m", "z"));
    EXPECT_EQ(testing::Value(a.written_by("m"), testing::Contains("z")), writes);
  }
}

TEST(Alias, ReachesTheOutput) {
  const Aliases a(R"(
%x = placeholder[target=x]
%a = call_function[target=aten::relu](args = (%x,))
%v = call_function[target=aten::view](args = (%a, [-1]))
%w = call_function[target=aten::t](args = (%a,))
%b = call_function[target=aten::cos](args = (%v,))
%c = call_function[target=aten::cos](args = (%w,))
return ({'v': %v}, [%b])
)");
  const AliasAnalysis aliases = a.analysis();
  for (const char* name : {"a", "v", "b"})
    EXPECT_TRUE(aliases.reaches_output(a.node(name))) << name;
  // Another view of what is returned is not returned itself.
  for (const char* name : {"w", "c", "x"})
    EXPECT_FALSE(aliases.reaches_output(a.node(name))) << name;
}

TEST(Alias, ConflictsOfOrder) {
  const Aliases a(R"(
%x = placeholder[target=x]
%y = call_function[target=aten::relu](args = (%x,))
%read = call_function[target=aten::cos](args = (%y,))
%write = call_method[target=add_](args = (%y, 1))
%other = call_function[target=aten::cos](args = (%x,))
%rand_1 = call_function[target=aten::rand_like](args = (%x,))
%rand_2 = call_function[target=aten::rand_like](args = (%x,))
%check = call_function[target=aten::_assert_async](args = (%x,))
return %read
)");
  const AliasAnalysis aliases = a.analysis();
  auto conflict = [&](const char* p, const char* q) {
    EXPECT_EQ(aliases.conflict(a.node(p), a.node(q)), aliases.conflict(a.node(q), a.node(p)));
    return aliases.conflict(a.node(p), a.node(q));
  };
  EXPECT_TRUE(conflict("read", "write"));
  EXPECT_FALSE(conflict("other", "write"));
  EXPECT_FALSE(conflict("read", "other"));
  EXPECT_TRUE(conflict("rand_1", "rand_2"));
  EXPECT_TRUE(conflict("rand_1", "check"));
  EXPECT_FALSE(conflict("rand_1", "read"));
}

// Functions of the user may do what they want if they are said to have effects.
TEST(Alias, WrappedFunctions) {
  register_wrapped_function("alias_test_pure", [](Values args, KwValues) { return args[0]; });
  register_wrapped_function("alias_test_effect", [](Values args, KwValues) { return args[0]; });
  has_side_effect(*Function::get("alias_test_effect"));
  const Aliases a(R"(
%x = placeholder[target=x]
%z = call_function[target=aten::relu](args = (%x,))
%p = call_function[target=alias_test_pure](args = (%z,))
%e = call_function[target=alias_test_effect](args = (%z,))
return %p
)");
  EXPECT_TRUE(a.share("p", "z"));
  EXPECT_EQ(a.written_by("p"), Names{});
  EXPECT_THAT(a.written_by("e"), testing::IsSupersetOf(Names{"x", "z"}));
}

// The operators that return their argument without saying so in their schema do it.
TEST(Alias, HiddenAliasesAreReal) {
  const at::Tensor x = torch::ones({2, 2});
  auto is_shared = [&](const char* function, Values more) {
    Values args = {x};
    args.insert(args.end(), more.begin(), more.end());
    return call(*Function::get(function), args).toTensor().data_ptr() == x.data_ptr();
  };
  EXPECT_TRUE(is_shared("aten::dropout", {0.5, false}));
  EXPECT_TRUE(is_shared("aten::atleast_1d", {}));
  EXPECT_TRUE(is_shared("aten::type_as", {x}));
  EXPECT_TRUE(is_shared("aten::sum_to_size", {c10::List<std::int64_t>({2, 2})}));
  EXPECT_TRUE(is_shared("aten::_unsafe_view", {c10::List<std::int64_t>({4})}));
}

}  // namespace
}  // namespace fx
