package packet

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// A Writer writes records as pcapng (draft-ietf-opsawg-pcapng): raw IP, on one interface. libpcap refuses a
// file with two interfaces of raw IP.
type Writer struct {
	w     *pcapgo.NgWriter
	wall  time.Time // the moment of boot
	limit int64
	size  int64 // of the packets written
	left  uint64
}

// NewWriter begins a file. boot is the wall clock at boottime 0. Of packets past limit bytes in all, only
// the number is kept.
func NewWriter(w io.Writer, boot time.Time, session string, limit int64) (*Writer, error) {
	ng, err := pcapgo.NewNgWriterInterface(w,
		pcapgo.NgInterface{Name: "session", Description: "what the session's sockets sent and received", LinkType: layers.LinkTypeRaw, OS: "Linux", TimestampResolution: 9},
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Hardware: runtime.GOARCH, OS: "Linux", Application: "rye", Comment: "session " + session}})
	if err != nil {
		return nil, fmt.Errorf("write packets: %w", err)
	}
	return &Writer{w: ng, wall: boot, limit: limit}, nil
}

// Write adds one packet.
func (w *Writer) Write(r Record) error {
	if w.size += int64(len(r.Data)); w.size > w.limit {
		w.size -= int64(len(r.Data))
		w.left++
		return nil
	}
	err := w.w.WritePacket(gopacket.CaptureInfo{
		Timestamp: w.wall.Add(time.Duration(r.TimeNS)), CaptureLength: len(r.Data), Length: max(r.Len, len(r.Data)),
	}, r.Data)
	if err != nil {
		return fmt.Errorf("write packets: %w", err)
	}
	return nil
}

// Left is how many packets found no room.
func (w *Writer) Left() uint64 { return w.left }

// Close writes what was counted and ends the file.
func (w *Writer) Close(seen, lost uint64) error {
	err := w.w.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{PacketsReceived: seen, PacketsDropped: lost + w.left})
	if e := w.w.Flush(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("write packets: %w", err)
	}
	return nil
}
