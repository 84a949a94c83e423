// torch.fx's AnnotationsTest (test_gradual_type.py).
#include "fx/graph/tensor_type.h"

#include "tests/graph/graphs.h"

namespace fx {
namespace {

constexpr std::nullopt_t kDyn = std::nullopt;

TensorType type(std::vector<TensorType::Dim> dims) { return TensorType::of(std::move(dims)); }

TEST(TensorType, G_109_R_091_consistency) {
  EXPECT_TRUE(is_consistent(TensorType::dyn(), type({1, 2, 3})));
  EXPECT_TRUE(is_consistent(type({1, 2, 3}), TensorType::dyn()));
  EXPECT_TRUE(is_consistent(type({1, 2, kDyn}), type({kDyn, 2, 3})));
  EXPECT_FALSE(is_consistent(type({1, 2, 3}), type({1, 2, 3, 5})));
  EXPECT_FALSE(is_consistent(type({1, 2}), type({1, 3})));
  EXPECT_TRUE(is_consistent(type({2}), type({2})));
  // Not transitive.
  EXPECT_TRUE(is_consistent(type({1}), type({kDyn})));
  EXPECT_TRUE(is_consistent(type({kDyn}), type({2})));
  EXPECT_FALSE(is_consistent(type({1}), type({2})));
}

TEST(TensorType, G_109_R_091_precision) {
  EXPECT_TRUE(is_more_precise(type({1, 2, 3}), TensorType::dyn()));
  EXPECT_TRUE(is_more_precise(type({1, 2, 3}), type({1, kDyn, 3})));
  EXPECT_TRUE(is_more_precise(type({1, 2}), type({1, 2})));
  EXPECT_TRUE(is_more_precise(TensorType::dyn(), TensorType::dyn()));
  EXPECT_FALSE(is_more_precise(TensorType::dyn(), type({1, 2})));
  EXPECT_FALSE(is_more_precise(type({1, kDyn}), type({1, 2})));
  EXPECT_FALSE(is_more_precise(type({1, 2}), type({1, 2, 3})));
}

TEST(TensorType, R_091_broadcasting) {
  auto check = [](const TensorType& a, const TensorType& b, const TensorType& left,
                  const TensorType& right) {
    EXPECT_EQ(broadcast_types(a, b), (std::pair{left, right}))
        << a.to_string() << " " << b.to_string();
    EXPECT_EQ(broadcast_types(b, a), (std::pair{right, left}));
  };
  check(type({1, 2, 3, kDyn}), type({2, 3, 4}), type({1, 2, 3, kDyn}), type({1, 2, 3, 4}));
  check(TensorType::dyn(), type({2, 1}), TensorType::dyn(), type({2, 1}));
  check(type({1, 2, 3}), type({1, 2, 3}), type({1, 2, 3}), type({1, 2, 3}));
  check(type({4, 1}), type({3}), type({4, 3}), type({4, 3}));
  check(type({1, kDyn}), type({5, 1}), type({5, kDyn}), type({5, kDyn}));
}

// annotate: a type is text on the node, in the form that it prints in.
TEST(TensorType, R_091_annotations) {
  EXPECT_EQ(TensorType::dyn().to_string(), "Dyn");
  EXPECT_EQ(type({1, 2, kDyn}).to_string(), "TensorType[1, 2, Dyn]");
  EXPECT_EQ(type({}).to_string(), "TensorType[]");
  Graph graph;
  Node& x = graph.placeholder("x", type({1, kDyn}).to_string());
  EXPECT_EQ(x.type(), "TensorType[1, Dyn]");
  EXPECT_EQ(graph.clone()->placeholders()[0]->type(), "TensorType[1, Dyn]");
}

}  // namespace
}  // namespace fx
