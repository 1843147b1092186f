# SPDX-License-Identifier: Apache-2.0
# Short names for what CMake, CTest and scripts/ do. Every build is in build/<preset>.
#
#   make            build/release/streampool and the two libraries
#   make test       build and run the tests; L=device runs one label and shows its figures
#   make test-arm64 cross-compiled for AArch64, tests under QEMU; L=ops runs one label
#   make check      what CI requires beyond the tests; STEPS="tidy tsan" runs some
#   make test-python  the Python package in a virtual environment below build/, and its tests
#   make test-python-torch  streampool.torch with Debian's PyTorch, in another one
#   make wheel      its wheels, in build/wheels
#   make test-cuda  the tests that need a GPU, with what a bare GPU machine has
#   make sanitize-cuda  every CUDA kernel under the four tools of compute-sanitizer
#   make soak       the tests with their full counts, the stress tests also with delays; the controlled
#                   scheduler with limits five times the default
#   make coverage   line coverage of src/, at least 90 %
#   make docs       docs/operators.md, from the table of ops; the manual page and the completion, from
#                   the tables of commands; the figures of README.md, from bench/results and the demo
#   make install    into PREFIX (/usr/local), below DESTDIR
#
# CC and CXX choose the compilers: make CC=clang. WERROR=ON makes warnings errors, as CI does.
# CUDA_ARCHITECTURES="75;90": the GPUs that nvcc compiles the kernels for; others compile them on first use.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
L ?=
STEPS ?=
WERROR ?=
CUDA_ARCHITECTURES ?=
TARGET = sp_program sp_shared sp_static

# CMake reads CC only when it first configures, so it is named each time; a second word, as in
# CC="ccache gcc", makes a list. A changed compiler makes CMake forget all else that is named beside it,
# hence twice.
chosen = $(filter-out default undefined,$(origin $(1)))
space := $(subst ,, )
COMPILERS = $(strip $(if $(call chosen,CC),-DCMAKE_C_COMPILER="$(subst $(space),;,$(strip $(CC)))") \
	$(if $(call chosen,CXX),-DCMAKE_CXX_COMPILER="$(subst $(space),;,$(strip $(CXX)))"))
CONFIGURE = $(if $(COMPILERS),cmake --preset release $(COMPILERS) >/dev/null && ) \
	cmake --preset release $(COMPILERS) \
	$(if $(WERROR),-DSP_WERROR=$(WERROR)) \
	$(if $(CUDA_ARCHITECTURES),-DSTREAMPOOL_CUDA_ARCHITECTURES="$(CUDA_ARCHITECTURES)")

# Ninja where it is installed; plain make builds too.
ifndef CMAKE_GENERATOR
ifneq ($(shell command -v ninja),)
export CMAKE_GENERATOR := Ninja
endif
endif

LABEL = $(if $(L),-L '^($(L))$$')
# Of one label the figures are shown too: --verbose prints what the tests note.
CTEST = ctest $(if $(L),--verbose,--output-on-failure) --no-tests=error --parallel $(JOBS) $(LABEL)

.PHONY: all release demo test test-python test-python-torch wheel test-arm64 test-cuda sanitize-cuda check soak bench docs format install clean coverage
all: release

release:
	@$(CONFIGURE) -DSP_TEST_TIMEOUT_FACTOR=1 >/dev/null
	@cmake --build build/release --parallel $(JOBS) --target $(TARGET)

test:
	@scripts/install-deps build
	@$(MAKE) release TARGET=all
	@start=$$SECONDS; (cd build/release && $(CTEST)) && \
		echo "test: $$((SECONDS - start)) s, of 300 planned"

test-arm64: export STREAMPOOL_TEST_SCALE ?= 0.3
test-arm64:
	@scripts/install-deps build arm64
	@start=$$SECONDS; cmake --preset arm64 >/dev/null && \
		cmake --build build/arm64 --parallel $(JOBS) --target sp_emulated && \
		(cd build/arm64 && $(CTEST) --output-on-failure -L '^emulated$$') && \
		echo "test-arm64: $$((SECONDS - start)) s, of 360 planned"

test-python:
	@scripts/install-deps python
	@start=$$SECONDS; scripts/test-python && echo "test-python: $$((SECONDS - start)) s, of 120 planned"

test-python-torch:
	@scripts/install-deps python torch
	@start=$$SECONDS; scripts/test-python-torch && echo "test-python-torch: $$((SECONDS - start)) s, of 120 planned"

wheel:
	@scripts/install-deps python
	@scripts/wheel

test-cuda:
	@scripts/test-cuda

sanitize-cuda:
	@scripts/sanitize-cuda

demo:
	@scripts/install-deps demo
	@$(MAKE) release TARGET="sp_demo sp_speech"
	@scripts/demo

check:
	@scripts/install-deps build check python
	@JOBS=$(JOBS) scripts/check $(STEPS)

# At this scale test_count() gives the full counts everywhere.
soak: export STREAMPOOL_TEST_SCALE ?= 1000000
soak:
	@scripts/install-deps build
	@$(CONFIGURE) -DSP_TEST_TIMEOUT_FACTOR=60 >/dev/null
	@cmake --build build/release --parallel $(JOBS)
	@cd build/release && ctest --verbose --parallel $(JOBS) --no-tests=error $(LABEL)
	@cmake --preset dev -B build/soak -DSP_TEST_TIMEOUT_FACTOR=60 >/dev/null
	@cmake --build build/soak --parallel $(JOBS) --target sp_delayed
	@cd build/soak && ctest --verbose --parallel $(JOBS) --no-tests=$(if $(L),ignore,error) -L '^delayed$$' $(LABEL)
ifeq ($(L),)
	@scripts/install-deps check
	@cmake --preset sched >/dev/null && cmake --build build/sched --parallel $(JOBS)
	@build/sched/sched_tests --jobs $(JOBS) --scale 5
endif

bench:
	@$(MAKE) release TARGET=all
	@shopt -s nullglob; for bench in build/release/bench/bench_*; do \
		if [[ -f $$bench && -x $$bench ]]; then $$bench || exit 1; fi; done

docs: release
	@build/release/streampool ops > docs/operators.md
	@build/release/streampool help --man > docs/streampool.1
	@build/release/streampool help --bash-completion > docs/streampool.bash
	@python3 -B bench/draw_threads.py > docs/threads.svg
	@python3 -B bench/draw_batching.py > docs/batching.svg
	@$(MAKE) release TARGET=sp_speech
	@build/release/examples/speech examples/silero_vad docs --seconds 0 >/dev/null

format:
	@scripts/check-format --fix

install: release
	@cmake --install build/release --prefix $(PREFIX)

coverage:
	@scripts/install-deps build check
	@scripts/coverage

clean:
	@rm -rf build
