// Package bpf holds rye's kernel programs and what bpf2go makes of them.
//
// The programs are C (rye.bpf.c and the headers it lists). The Go side is generated: event layouts come
// from the object's BTF and are never typed by hand. Both .go and .o are committed, so a machine without
// clang builds with plain `go build`. Only loader and collector import this package.
package bpf

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -output-stem probe -target amd64,arm64 -type event_type -type event_flag -type path_op -type escape_what -type call -type membership -type proc_key -type event_header -type fork_event -type exec_event -type exec_failed_event -type exit_event -type open_event -type connect_event -type ipc_event -type cgroup_event -type pathop_event -type escape_event -type repeat_key -type repeat_count -type member -type packet_record -type refused_event -type refused_how Probe rye.bpf.c -- -I../vmlinux -I/usr/include -O2 -mcpu=v2 -Wall -Werror -Wno-missing-declarations
