package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ryehq/rye/collector"
	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/loader"
	"github.com/ryehq/rye/packet"
)

// packetsName is the file of copied packets in a session's folder.
const packetsName = "packets.pcapng"

// maxPackets bounds that file.
const maxPackets = 256 << 20

// captureOf is loader.Options.Capture for what --capture says.
func captureOf(flag string) (string, error) {
	switch flag {
	case "none":
		return loader.CaptureNone, nil
	case "headers", "full":
		return flag, nil
	}
	return "", fmt.Errorf("--capture %q: none, headers or full", flag)
}

// A capture reads the session's packets: names become events, and all of it goes into a file. The nil
// *capture is a session of which no packets are copied.
type capture struct {
	obs    *observer
	w      *witness
	ring   *collector.Packets
	reader packet.Reader
	since  uint64 // earlier packets are the self test's
	file   *os.File
	sum    hash.Hash
	out    *packet.Writer
	err    error // why the file is not whole
	done   chan error
}

// startCapture begins with what the kernel has copied since the command started.
func startCapture(obs *observer, b *book, w *witness, since uint64) *capture {
	if obs.probes == nil || obs.probes.Packets() == nil {
		return nil
	}
	c := &capture{obs: obs, w: w, since: since, done: make(chan error, 1)}
	var err error
	if c.ring, err = collector.NewPackets(obs.probes.Packets(), c.packet); err != nil {
		w.degrade(err.Error())
		return nil
	}
	if c.err = c.create(b); c.err != nil {
		w.degrade(c.err.Error())
	}
	go func() { c.done <- c.ring.Run() }()
	return c
}

func (c *capture) create(b *book) error {
	if b.dir == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(b.dir, packetsName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create packet file: %w", err)
	}
	c.file, c.sum = f, sha256.New()
	boot := time.Now().Add(-time.Duration(boottime()))
	c.out, err = packet.NewWriter(io.MultiWriter(f, c.sum), boot, b.id, maxPackets)
	return err
}

func (c *capture) packet(p collector.Packet) error {
	if p.TimeNS < c.since {
		return nil
	}
	rec := packet.Record{TimeNS: p.TimeNS, Cookie: p.Cookie, Proc: p.Owner, Out: p.Out, Len: p.Len, Data: p.Data}
	for _, e := range c.reader.Add(rec) {
		c.w.said(e)
	}
	if c.out != nil && c.err == nil {
		c.err = c.out.Write(rec)
	}
	return nil
}

// drain reads what is left in the ring and closes the file. What it returns is for session.end.
func (c *capture) drain() *event.PacketTotals {
	if c == nil {
		return nil
	}
	if err := errors.Join(c.ring.Stop(), <-c.done, c.ring.Close()); err != nil {
		c.w.degrade(fmt.Sprintf("packets could not be read to the end: %v", err))
	}
	for _, e := range c.reader.End(boottime()) {
		c.w.said(e)
	}
	t := &event.PacketTotals{}
	var err error
	if t.Seen, t.Copied, t.Lost, err = c.obs.probes.PacketCounters(); err != nil {
		c.w.degrade(err.Error())
	}
	if n := t.Lost + c.reader.Dropped(); n > 0 {
		c.w.said(event.New(boottime(), nil, &event.ObserverLost{Counts: map[string]uint64{"net.packet": n},
			Reason: fmt.Sprintf("the packet ring was full %d times; %d beginnings of connections found no room", t.Lost, c.reader.Dropped()), Final: true}))
	}
	if c.out != nil {
		t.Left = c.out.Left()
		c.err = errors.Join(c.err, c.out.Close(t.Seen, t.Lost), c.file.Close())
		t.SHA256 = hex.EncodeToString(c.sum.Sum(nil))
	}
	if c.err != nil {
		c.w.degrade(c.err.Error())
	}
	return t
}
