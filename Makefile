# The thin door: each target is one script or one CMake preset, see CONTRIBUTING.md.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60

.PHONY: help demo check build install bench fuzz format lint clean

help:
	@echo 'make demo      build, make a small capture, look at it and judge it'
	@echo 'make check     all tests: sanitizers, unit, command line, fuzz corpus, lint'
	@echo 'make build     build/release/npuprof'
	@echo 'make install   program and man pages (PREFIX=$(PREFIX), DESTDIR=$(DESTDIR))'
	@echo 'make bench     measure; prints ratios'
	@echo 'make fuzz      run every fuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make format    lay out the sources with clang-format'
	@echo 'make lint      the checks of scripts/ci'
	@echo 'make clean     remove build/'
	@echo
	@echo 'What is missing is installed with apt-get (root or sudo): see scripts/deps.sh.'

demo: build
	@scripts/demo.sh build/release/npuprof

check:
	@scripts/check.sh

build:
	@scripts/deps.sh build
	@scripts/build.sh release

install: build
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'

bench:
	@scripts/deps.sh build bench
	@scripts/bench.sh

fuzz:
	@scripts/deps.sh build fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh

format:
	@scripts/deps.sh lint
	@scripts/ci/check-format.sh --fix

lint:
	@scripts/deps.sh build test lint
	@scripts/lint.sh

clean:
	rm -rf build
