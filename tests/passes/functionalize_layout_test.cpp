// Functional graphs keep the order in memory of what the program writes: random numbers are drawn
// in that order, and views ask for it.
#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>

#include "fx/capture/make_fx.h"
#include "fx/passes/functionalize.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;
using Program = std::function<Tensor(Tensor)>;
using Programs = std::map<std::string, Program>;

// Tensors of one content and every kind of order in memory.
std::map<std::string, Tensor> layouts() {
  torch::manual_seed(3);
  const auto image = [] { return torch::randn({2, 3, 4, 5}); };
  return {
      {"contiguous", torch::randn({5, 7})},
      {"one element", torch::randn({1, 1}).t()},
      {"scalar", torch::randn({})},
      {"empty", torch::randn({4, 0}).t()},
      {"transposed", torch::randn({7, 5}).t()},
      {"permuted", torch::randn({3, 4, 5}).permute({2, 0, 1})},
      {"channels last", image().contiguous(at::MemoryFormat::ChannelsLast)},
      {"expanded by one", torch::randn({5}).unsqueeze(1)},
      {"rows with gaps", torch::randn({6, 9}).slice(1, 0, 5)},
      {"every third row", torch::randn({15, 4}).slice(0, 0, 15, 3)},
      {"columns with gaps", torch::randn({9, 6}).slice(1, 1, 6, 2).t()},
      {"a line with gaps", torch::randn({38}).slice(0, 0, 38, 2)},
      {"an even line with gaps", torch::randn({40}).slice(0, 0, 40, 2)},
      {"a short line with gaps", torch::randn({6}).slice(0, 0, 6, 2)},
      {"part of an image", image().slice(3, 0, 3).permute({0, 2, 3, 1})},
  };
}

// A tensor of these values that lies as `like` does.
Tensor lying_as(const Tensor& values, const Tensor& like) {
  Tensor made =
      torch::zeros({static_cast<std::int64_t>(like.storage().nbytes() / like.element_size())},
                   like.options())
          .as_strided(like.sizes(), like.strides(), like.storage_offset());
  return made.copy_(values);
}

void expect_as_eager(const Programs& programs, const std::vector<Tensor>& more = {}) {
  auto examples = layouts();
  for (std::size_t i = 0; i < more.size(); ++i) examples.emplace(std::to_string(i), more[i]);
  for (const auto& [layout, example] : examples)
    for (const auto& [name, program] : programs) {
      SCOPED_TRACE(name + ", " + layout);
      auto run = [&](const std::function<Tensor(Tensor)>& what, std::vector<Tensor>& out) {
        Tensor x = lying_as(example, example);
        torch::manual_seed(11);
        out.push_back(what(x));
        out.push_back(x);
        out.push_back(torch::rand({2}));  // as many numbers were drawn
      };
      std::vector<Tensor> expected, found;
      run(program, expected);
      auto gm = make_fx(program, {lying_as(example, example)});
      functionalize(*gm, {lying_as(example, example)});
      run([&](Tensor x) { return (*gm)(x).toTensor(); }, found);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(torch::allclose(found[i], expected[i], 0, 0, true)) << i << gm->graph();
    }
}

TEST(FunctionalizeLayout, random_numbers_drawn_in_place) {
  Programs programs;
  const std::map<std::string, std::function<void(Tensor)>> draws = {
      {"bernoulli_", [](Tensor t) { t.bernoulli_(0.3); }},
      {"bernoulli_ rarely", [](Tensor t) { t.bernoulli_(1e-3); }},
      {"bernoulli_ never", [](Tensor t) { t.bernoulli_(0.0); }},
      {"bernoulli_ always", [](Tensor t) { t.bernoulli_(1.0); }},
      {"bernoulli_ by tensor", [](Tensor t) { t.bernoulli_(torch::full(t.sizes(), 0.4)); }},
      {"uniform_", [](Tensor t) { t.uniform_(-1, 2); }},
      {"normal_", [](Tensor t) { t.normal_(0.5, 2); }},
      {"exponential_", [](Tensor t) { t.exponential_(2); }},
      {"geometric_", [](Tensor t) { t.geometric_(0.3); }},
      {"cauchy_", [](Tensor t) { t.cauchy_(1, 2); }},
      {"log_normal_", [](Tensor t) { t.log_normal_(0.1, 0.4); }},
      {"random_", [](Tensor t) { t.random_(); }},
      {"random_ to", [](Tensor t) { t.random_(9); }},
      {"random_ from to", [](Tensor t) { t.random_(-3, 9); }},
      {"dropout_", [](Tensor t) { torch::dropout_(t, 0.4, true); }},
      {"alpha_dropout_", [](Tensor t) { torch::alpha_dropout_(t, 0.4, true); }},
      {"rrelu_", [](Tensor t) { torch::rrelu_(t, 0.1, 0.3, true); }},
  };
  for (const auto& [name, draw] : draws) {
    programs[name + " into the input"] = [draw](Tensor x) {
      draw(x);
      return x * 2;
    };
    programs[name + " into memory like it"] = [draw](Tensor x) {
      Tensor y = torch::zeros_like(x);
      draw(y);
      draw(y);
      return y + x;
    };
    programs[name + " behind a write"] = [draw](Tensor x) {
      x.add_(1);
      draw(x);
      return x.sin();
    };
  }
  expect_as_eager(programs);
}

TEST(FunctionalizeLayout, random_numbers_of_other_dtypes) {
  Programs programs;
  for (const at::ScalarType dtype : {at::kDouble, at::kBFloat16, at::kInt, at::kBool}) {
    programs[std::string("bernoulli_ ") + c10::toString(dtype)] = [dtype](Tensor x) {
      return x.to(dtype).bernoulli_(0.3).to(at::kFloat);
    };
    programs[std::string("random_ ") + c10::toString(dtype)] = [dtype](Tensor x) {
      return x.to(dtype).random_(0, 2).to(at::kFloat);
    };
    if (!at::isFloatingType(dtype)) continue;
    programs[std::string("normal_ ") + c10::toString(dtype)] = [dtype](Tensor x) {
      return x.to(dtype).normal_(1, 2).to(at::kFloat);
    };
  }
  programs["normal_ complex"] = [](Tensor x) {
    return torch::view_as_real(x.to(at::kComplexFloat).normal_(0, 2)).sum(-1);
  };
  programs["normal_ into complex memory with gaps"] = [](Tensor x) {
    Tensor y = torch::zeros({6, 9}, at::kComplexFloat);
    y.slice(1, 0, 5).normal_(0, 2);
    return torch::view_as_real(y).sum() + x;
  };
  expect_as_eager(programs);
}

TEST(FunctionalizeLayout, random_numbers_drawn_through_views) {
  const Tensor base = torch::randn({6, 8});
  Programs programs;
  const std::map<std::string, std::function<void(Tensor)>> draws = {
      {"bernoulli_", [](Tensor t) { t.bernoulli_(0.3); }},
      {"normal_", [](Tensor t) { t.normal_(0.5, 2); }},
      {"uniform_", [](Tensor t) { t.uniform_(); }},
      {"exponential_", [](Tensor t) { t.exponential_(); }},
      {"dropout_", [](Tensor t) { torch::dropout_(t, 0.4, true); }},
  };
  for (const auto& [name, draw] : draws) {
    const auto add = [&](const std::string& view, const std::function<Tensor(Tensor)>& of) {
      programs[name + " through " + view] = [draw, of](Tensor x) {
        Tensor y = torch::zeros({6, 8});
        draw(of(y));
        of(y).mul_(2);
        draw(of(y));
        return y.sum() + y.t().slice(0, 0, 1).sum() + x;
      };
    };
    add("t", [](Tensor y) { return y.t(); });
    add("slice", [](Tensor y) { return y.slice(1, 0, 5); });
    add("a line", [](Tensor y) { return y.select(1, 2); });
    add("diagonal", [](Tensor y) { return y.diagonal(); });
    add("as_strided", [](Tensor y) { return y.as_strided({4, 5}, {1, 9}, 2); });
    add("view", [](Tensor y) { return y.view({-1}).slice(0, 1, 40, 2); });
  }
  for (const auto& [name, program] : programs) {
    SCOPED_TRACE(name);
    const Tensor x = torch::zeros({1});
    auto gm = make_fx(program, {x});
    functionalize(*gm, {x});
    torch::manual_seed(5);
    const Tensor expected = program(x);
    torch::manual_seed(5);
    EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), expected)) << gm->graph();
  }
}

TEST(FunctionalizeLayout, random_numbers_drawn_into_given_memory) {
  Programs programs;
  programs["rand_out"] = [](Tensor x) { return at::rand_out(x, x.sizes()) * 2; };
  programs["randn_out"] = [](Tensor x) { return at::randn_out(x, x.sizes()) * 2; };
  programs["randint_out"] = [](Tensor x) { return at::randint_out(x, 2, 9, x.sizes()) * 2; };
  expect_as_eager(programs);
  // Of a kernel that draws by itself, in the order of the memory that it is given.
  const Program program = [](Tensor x) {
    return at::bernoulli_out(x, torch::full({4, 5}, 0.5), std::nullopt) * 1;
  };
  auto gm = make_fx(program, {torch::zeros({4, 5})});
  functionalize(*gm, {torch::zeros({4, 5})});
  torch::manual_seed(1);
  const Tensor expected = program(torch::zeros({4, 5}));
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal((*gm)(torch::zeros({4, 5})).toTensor(), expected));
  gm = make_fx(program, {torch::zeros({5, 4}).t()});
  EXPECT_FX_ERROR(functionalize(*gm, {torch::zeros({5, 4}).t()}), PassError, kNotFunctional,
                  "that is not contiguous, in the order of its memory");
}

// What LibTorch's functional forms do not keep: products, sums and sorts are contiguous.
TEST(FunctionalizeLayout, memory_that_was_written_keeps_its_order) {
  expect_as_eager({
      {"addmm_",
       [](Tensor x) {
         Tensor y = torch::zeros({7, 5}).t();
         y.addmm_(torch::ones({5, 2}), torch::ones({2, 7}));
         return torch::dropout(y, 0.5, true) + x.sum();
       }},
      {"addmm_ and view",
       [](Tensor x) {
         Tensor y = torch::zeros({7, 5}).t();
         y.addmm_(torch::ones({5, 2}), torch::ones({2, 7}));
         return y.t().view({-1}) + x.sum();
       }},
      {"addmm_ through a view",
       [](Tensor x) {
         Tensor y = torch::zeros({7, 5});
         y.t().addmm_(torch::ones({5, 2}), torch::ones({2, 7}));
         return y.view({-1}) + x.sum();
       }},
      {"mm_out",
       [](Tensor x) {
         Tensor y = torch::zeros({7, 5}).t();
         at::mm_out(y, torch::rand({5, 2}), torch::rand({2, 7}));
         return torch::dropout(y, 0.5, true) + x.sum();
       }},
      {"cumsum_",
       [](Tensor x) {
         if (x.dim() > 0) x.cumsum_(0);
         return x.uniform_();
       }},
      {"index_put_",
       [](Tensor x) {
         if (x.dim() > 1 && x.size(0) > 2) x.index_put_({torch::tensor({2, 0})}, torch::ones({}));
         return torch::dropout(x, 0.5, true);
       }},
      {"masked_fill_", [](Tensor x) { return x.masked_fill_(x > 0, 2).bernoulli_(0.5); }},
      {"index_add_",
       [](Tensor x) {
         if (x.dim() > 0 && x.size(0) > 2)
           x.index_add_(0, torch::tensor({1}), x.slice(0, 0, 1).clone());
         return torch::dropout(x, 0.5, true);
       }},
      {"foreach",
       [](Tensor x) {
         std::vector<Tensor> list{x, torch::zeros({7, 5}).t()};
         at::_foreach_add_(list, 1);
         return torch::dropout(list[0], 0.5, true) + torch::dropout(list[1], 0.5, true).sum();
       }},
      {"resize_ to its size", [](Tensor x) { return x.resize_(x.sizes()) * 2; }},
      {"copy_", [](Tensor x) { return x.copy_(torch::ones(x.sizes())).bernoulli_(0.5); }},
      {"zero_", [](Tensor x) { return x.zero_().bernoulli_(0.5); }},
      {"fill_", [](Tensor x) { return x.fill_(2).normal_(); }},
      {"relu_", [](Tensor x) { return torch::dropout(x.relu_(), 0.5, true); }},
      {"mul_ by another order",
       [](Tensor x) {
         x.mul_(torch::ones(x.sizes()));
         return torch::dropout(x, 0.5, true);
       }},
      {"where_self_out",
       [](Tensor x) {
         return torch::dropout(at::where_out(x, x > 0, x.clone(), x.exp()), 0.5, true);
       }},
      {"sort_out",
       [](Tensor x) {
         if (x.dim() == 0) return x;
         Tensor indices = torch::zeros(x.sizes(), at::kLong);
         at::sort_out(x, indices, x.clone(), 0);
         return torch::dropout(x, 0.5, true);
       }},
  });
}

}  // namespace
}  // namespace fx
