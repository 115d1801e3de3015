package collector

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/bpf"
	"github.com/ryehq/rye/event"
)

func decodeRefused(raw []byte) (event.Body, bpf.ProbeRepeatKey, error) {
	var r bpf.ProbeRefusedEvent
	var key bpf.ProbeRepeatKey
	if _, err := fixed(raw, &r); err != nil {
		return nil, key, err
	}
	e := &event.NetRefused{Family: familyName(r.Family), Proto: protoName(r.Protocol, r.SockType), Count: 1, Marks: flagMarks(r.H.Flags, nil)}
	switch r.How {
	case bpf.ProbeRefusedHowREFUSED_CONNECT:
		e.How = "connect"
	case bpf.ProbeRefusedHowREFUSED_SEND:
		e.How = "send"
	case bpf.ProbeRefusedHowREFUSED_PACKET:
		e.How = "packet"
	default:
		e.How = "socket"
	}
	if r.SockType == unix.SOCK_RAW {
		e.Marks = append(e.Marks, "raw")
	}
	if e.How != "socket" {
		e.Remote = netip.AddrPortFrom(netip.AddrFrom16(r.Remote).Unmap(), r.RemotePort).String()
		key = bpf.ProbeRepeatKey{Proc: r.H.Proc, Lo: binary.NativeEndian.Uint64(r.Remote[:]), Hi: binary.NativeEndian.Uint64(r.Remote[8:]),
			Dev: uint32(r.RemotePort), Access: 1<<29 | uint32(r.How)<<16 | r.Protocol&0xff}
	}
	return e, key, nil
}
