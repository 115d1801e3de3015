# rye. `make run` does the main job, `make test` runs everything that can run here.
# Targets that need packages install them on Debian and Ubuntu, and elsewhere say what to install.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
GOFLAGS_BUILD := -trimpath -ldflags "-X main.version=$(VERSION)"
CLANG := 19

# Capabilities are dropped on every thread of the process, which the Go runtime can only do without cgo.
export CGO_ENABLED = 0

.PHONY: all build run test test-deps vmtest icount coverage check generate bench fuzz clean

all: build

build:
	go build $(GOFLAGS_BUILD) -o bin/rye ./cmd/rye

# Wraps a bundled scripted assistant that does one thing more than was approved. Works without privilege,
# and then says what that leaves unproven.
run: build
	@bin/rye demo

# What the tests need beside Go: a C compiler, a few programs, and the real assistants from npm.
test-deps:
	@scripts/test-deps

test: test-deps build
	@scripts/test

# The privileged tests in Debian's 5.10, 6.1, 6.12 and 7.2 kernels under QEMU; KERNEL="6.1 7.2" picks, 6.12-arm64
# is one of the other architecture.
vmtest:
	@scripts/vmtest

# Instructions per open and exec that rye adds, in a guest that counts them; KERNEL picks the kernel.
icount:
	@scripts/icount

# docs/coverage.md, from what the evasion suite finds on each kernel.
coverage:
	@scripts/coverage

generate:
	@scripts/need-clang $(CLANG)
	go generate ./bpf

# Regenerates and demands no difference; vet, staticcheck, known vulnerabilities, formatting, and the
# direction of dependencies.
check:
	@scripts/check $(CLANG)

bench: build
	@scripts/bench

fuzz:
	@scripts/fuzz

clean:
	rm -rf bin .cache
