# Thin targets over the CMake presets. `make demo` and `make test` do all the set-up a fresh Debian 12 needs.
# Variables: PRESET (dev), JOBS (number of cores), FXCPP_TORCH_ROOT and FXCPP_PYTHON (found by themselves).
PRESET ?= dev
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)

.DEFAULT_GOAL := build
.PHONY: help build demo demo-minilm test test-sanitized test-zoo test-opinfo bench bench-kernels bench-ops docs install format format-check tidy layers slowest setup python-ref clean distclean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

build: setup ## build everything (PRESET=dev)
	@scripts/build.sh $(PRESET) $(JOBS) all

demo: setup ## build and run the demonstration
	@scripts/build.sh $(PRESET) $(JOBS) demo

demo-minilm: setup python-ref ## sentences to vectors: a tokenizer in C++ and an encoder with its real weights
	@scripts/setup.sh zoo && scripts/build.sh $(PRESET) $(JOBS) example_minilm && scripts/minilm.sh $(BUILD)

test: setup ## build and run all tests
	@scripts/build.sh $(PRESET) $(JOBS) all
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

test-sanitized: setup ## random programs and edits of graphs under the address and undefined-behaviour sanitizers
	@scripts/build.sh asan $(JOBS) test_random
	@ctest --test-dir build/asan --output-on-failure -j $(JOBS) -L '^random$$'

test-zoo: setup python-ref ## export the models of docs/zoo.md, run them, and write the page
	@scripts/setup.sh zoo && scripts/build.sh $(PRESET) $(JOBS) zoo_report
	@scripts/zoo.sh $(BUILD)

test-opinfo: setup python-ref ## run the samples of PyTorch's operator database, and write docs/opinfo.md
	@scripts/build.sh $(PRESET) $(JOBS) opinfo_report
	@scripts/opinfo.sh $(BUILD)

bench: setup ## build the benchmarks, optimised, and compare with Python's torch.fx
	@scripts/build.sh release $(JOBS) bench

bench-kernels: setup ## build the benchmarks, optimised, and compare compiled kernels with eager and torch.compile
	@scripts/build.sh release $(JOBS) bench-kernels

bench-ops: setup ## time each operator compiled and by LibTorch, and write docs/operator-speed.md
	@scripts/build.sh release $(JOBS) bench-ops

docs: ## the user guide and the reference of the public interface, in build/docs/html
	@scripts/setup.sh docs && rm -rf build/docs/html && mkdir -p build/docs
	@.deps/docs/bin/sphinx-build -q -W --keep-going -b html -d build/docs/doctrees docs build/docs/html
	@doxygen docs/Doxyfile
	@echo build/docs/html/index.html

install: setup ## install the release build to PREFIX (default /usr/local)
	@scripts/build.sh release $(JOBS) all
	@cmake --install build/release $(if $(PREFIX),--prefix $(PREFIX))

format: ## format all C++ files in place
	@scripts/setup.sh lint && scripts/check_format.sh --fix

format-check: ## check the format of all C++ files
	@scripts/setup.sh lint && scripts/check_format.sh

tidy: setup ## check the naming rules with clang-tidy
	@scripts/setup.sh lint && scripts/build.sh $(PRESET) $(JOBS) configure && scripts/tidy.py $(BUILD) -j $(JOBS)

layers: ## check the direction of the includes
	@scripts/check_layers.py

slowest: ## the files of the last build that took longest to compile
	@scripts/slowest_files.py $(BUILD)

setup: ## install what is missing: Debian packages, LibTorch
	@scripts/setup.sh build libtorch

python-ref: ## a Python with torch and torchvision, the reference of some tests
	@scripts/setup.sh build python-ref

clean: ## remove all builds
	rm -rf build

distclean: clean ## remove all builds and everything that setup fetched into .deps
	rm -rf .deps
