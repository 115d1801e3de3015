package collector

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/ryehq/rye/bpf"
	"github.com/ryehq/rye/event"
)

// Kernel is what the collector needs of the loaded programs.
type Kernel interface {
	Events() *ebpf.Map
	Repeats() *ebpf.Map
	// Counters returns records delivered to the ring and lost, per bpf.ProbeEventType.
	Counters() (emitted, lost []uint64, err error)
}

const (
	pollEvery = 50 * time.Millisecond // the reader is woken by fill level; this bounds the delay of the rest
	// A process that opens more distinct files than this has its counts taken early, to bound memory.
	repeatsPerProcess = 32768
)

// A Collector reads one session's ring. Run is for one goroutine; Kick and Stop may be called from
// others.
type Collector struct {
	kernel  Kernel
	reader  *ringbuf.Reader
	sink    func(event.Event) error
	open    map[event.ProcessKey]map[bpf.ProbeRepeatKey]event.Event
	exe     map[event.ProcessKey]string
	stop    atomic.Bool
	flushed chan struct{} // Run has read what was in the ring at a Kick
	read    uint64
	garbled uint64 // records that did not decode: a bug, counted and reported as loss
	told    []uint64
}

// New returns a collector that hands every event to sink, in the ring's order. A sink error ends Run.
func New(k Kernel, sink func(event.Event) error) (*Collector, error) {
	r, err := ringbuf.NewReader(k.Events())
	if err != nil {
		return nil, fmt.Errorf("open ring buffer: %w", err)
	}
	return &Collector{
		kernel: k, reader: r, sink: sink,
		open: map[event.ProcessKey]map[bpf.ProbeRepeatKey]event.Event{},
		exe:  map[event.ProcessKey]string{},
		told: make([]uint64, bpf.ProbeEventTypeEVENT_TYPE_MAX), flushed: make(chan struct{}, 1),
	}, nil
}

// Run reads until Stop. Everything that was in the ring when Stop was called has then been handed on:
// this is the barrier before a verdict. Loss is reported as it is noticed.
func (c *Collector) Run() error {
	var rec ringbuf.Record
	// The deadline matters only while the ring is empty, so it is set anew only when it has passed.
	c.reader.SetDeadline(time.Now().Add(pollEvery))
	for {
		err := c.reader.ReadInto(&rec)
		switch {
		case err == nil:
			if err := c.record(rec.RawSample); err != nil {
				return err
			}
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.reader.SetDeadline(time.Now().Add(pollEvery))
			if err := c.reportLoss(false); err != nil {
				return err
			}
		case errors.Is(err, ringbuf.ErrFlushed):
			if c.stop.Load() {
				return c.finish()
			}
			select {
			case c.flushed <- struct{}{}:
			default:
			}
		case errors.Is(err, ringbuf.ErrClosed):
			return nil
		default:
			return fmt.Errorf("read ring buffer: %w", err)
		}
	}
}

// Kick makes Run read now what is in the ring, without waiting for the next poll.
func (c *Collector) Kick() error { return c.reader.Flush() }

// Barrier returns when everything that was in the ring at the call has been handed on. Who asks what
// happened so far must wait for it: Run may be behind.
func (c *Collector) Barrier(patience time.Duration) error {
	select {
	case <-c.flushed: // of an earlier Kick
	default:
	}
	if err := c.reader.Flush(); err != nil {
		return fmt.Errorf("flush ring buffer: %w", err)
	}
	select {
	case <-c.flushed:
		return nil
	case <-time.After(patience):
		return errors.New("the ring buffer was not read in time")
	}
}

// Stop makes Run return once the ring is empty.
func (c *Collector) Stop() error {
	c.stop.Store(true)
	if err := c.reader.Flush(); err != nil {
		return fmt.Errorf("flush ring buffer: %w", err)
	}
	return nil
}

// Close releases the ring. Run must have returned.
func (c *Collector) Close() error { return c.reader.Close() }

// Read returns the number of records read so far.
func (c *Collector) Read() uint64 { return c.read }

func (c *Collector) record(raw []byte) error {
	c.read++
	e, key, err := Decode(raw)
	if err != nil {
		c.garbled++
		return nil
	}
	switch b := e.Body.(type) {
	case *event.ProcessExec:
		c.exe[*e.Proc] = b.Exe
	case *event.ProcessExit:
		b.Exe = c.exe[*e.Proc]
		delete(c.exe, *e.Proc)
		if err := c.takeRepeats(*e.Proc); err != nil {
			return err
		}
	case *event.CgroupLeft:
		b.Exe = c.exe[*e.Proc]
	}
	if key != (bpf.ProbeRepeatKey{}) {
		proc := procKey(key.Proc) // none for a packet whose socket's maker is not known
		keys := c.open[proc]
		if keys == nil {
			keys = map[bpf.ProbeRepeatKey]event.Event{}
			c.open[proc] = keys
		}
		keys[key] = e
		if len(keys) >= repeatsPerProcess {
			if err := c.takeRepeats(proc); err != nil {
				return err
			}
		}
	}
	return c.sink(e)
}

// takeRepeats takes a process's counts out of the kernel's table and reports them.
func (c *Collector) takeRepeats(proc event.ProcessKey) error {
	keys := c.open[proc]
	delete(c.open, proc)
	for key, first := range keys {
		var n bpf.ProbeRepeatCount
		if err := c.kernel.Repeats().LookupAndDelete(key, &n); err != nil {
			if !errors.Is(err, ebpf.ErrNotSupported) { // hash tables: Linux 5.14
				continue
			}
			if c.kernel.Repeats().Lookup(key, &n) != nil || c.kernel.Repeats().Delete(key) != nil {
				continue
			}
		}
		if _, mapped := first.Body.(*event.FileMap); mapped || n.Repeats == 0 {
			continue // a file stays mapped: once more says nothing new
		}
		if err := c.sink(repeated(first, n.Repeats)); err != nil {
			return err
		}
	}
	return nil
}

func repeated(first event.Event, n uint64) event.Event {
	switch b := first.Body.(type) {
	case *event.FileOpen:
		again := *b
		again.Count, again.Repeats, again.Created = n, true, false
		first.Body = &again
	case *event.IPCConnect:
		again := *b
		again.Count = n
		again.Marks = append(append([]string(nil), again.Marks...), "repeats")
		first.Body = &again
	case *event.NetConnect:
		again := *b
		again.Count = n
		again.Marks = append(append([]string(nil), again.Marks...), "repeats")
		first.Body = &again
	case *event.NetRefused:
		again := *b
		again.Count, again.Repeats = n, true
		first.Body = &again
	}
	return first
}

func (c *Collector) finish() error {
	for proc := range c.open {
		if err := c.takeRepeats(proc); err != nil {
			return err
		}
	}
	return c.reportLoss(true)
}

// TypeName is a record type's name as loss is reported under.
func TypeName(t bpf.ProbeEventType) string {
	switch t {
	case bpf.ProbeEventTypeEVENT_FORK:
		return string(event.TypeProcessFork)
	case bpf.ProbeEventTypeEVENT_EXEC:
		return string(event.TypeProcessExec)
	case bpf.ProbeEventTypeEVENT_EXEC_FAILED:
		return string(event.TypeProcessExecFailed)
	case bpf.ProbeEventTypeEVENT_EXIT:
		return string(event.TypeProcessExit)
	case bpf.ProbeEventTypeEVENT_OPEN:
		return string(event.TypeFileOpen)
	case bpf.ProbeEventTypeEVENT_CONNECT:
		return string(event.TypeNetConnect)
	case bpf.ProbeEventTypeEVENT_BIND:
		return string(event.TypeNetBind)
	case bpf.ProbeEventTypeEVENT_IPC:
		return string(event.TypeIPCConnect)
	case bpf.ProbeEventTypeEVENT_CGROUP:
		return string(event.TypeCgroupLeft)
	case bpf.ProbeEventTypeEVENT_PATHOP:
		return "file.name"
	case bpf.ProbeEventTypeEVENT_ESCAPE:
		return string(event.TypeEscape)
	case bpf.ProbeEventTypeEVENT_REFUSED:
		return string(event.TypeNetRefused)
	}
	return "unknown"
}

// Lost returns the session's losses so far, per event type name; empty when there were none.
func (c *Collector) Lost() (map[string]uint64, error) {
	_, lost, err := c.kernel.Counters()
	if err != nil {
		return nil, err
	}
	m := map[string]uint64{}
	for t, n := range lost {
		if n > 0 {
			m[TypeName(bpf.ProbeEventType(t))] = n
		}
	}
	if c.garbled > 0 {
		m["undecodable"] = c.garbled
	}
	return m, nil
}

// reportLoss emits observer.lost when counts grew; at the end it emits the totals if there were any.
func (c *Collector) reportLoss(final bool) error {
	emitted, lost, err := c.kernel.Counters()
	if err != nil {
		return err
	}
	counts := map[string]uint64{}
	var reasons []string
	for t, n := range lost {
		from := c.told[t]
		if final {
			from = 0
		}
		if n > from {
			counts[TypeName(bpf.ProbeEventType(t))] = n - from
		}
		c.told[t] = n
	}
	if final {
		var sum uint64
		for _, n := range emitted {
			sum += n
		}
		if c.garbled > 0 {
			counts["undecodable"] = c.garbled
		}
		// The ring must have given back exactly what went in.
		if sum > c.read {
			counts["unread"] = sum - c.read
			reasons = append(reasons, "records in the ring were not read")
		}
	}
	if len(counts) == 0 {
		return nil
	}
	reasons = append(reasons, "the ring buffer was full or a buffer was busy")
	return c.sink(event.New(now(), nil, &event.ObserverLost{Counts: counts, Reason: strings.Join(reasons, "; "), Final: final}))
}
