package wrapper

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// feed calls the caller's functions, one at a time, in the order things happened.
type feed struct {
	q      *queue
	output func(p []byte, timeNS, skipped uint64)
	input  func(p []byte, timeNS, skipped uint64)
	resize func(cols, rows int, timeNS uint64)
	idle   func(timeNS uint64)
	done   chan struct{}
	err    error // valid after done
}

// feedBytes bounds what waits for the callbacks: at the pace of a screen model a second or so.
const feedBytes = 4 << 20

// floodRest keeps the model from taking a processor of its own for a flood it cannot follow anyway.
const floodRest = 2 * time.Second

func newFeed(o Options) *feed {
	if o.Output == nil && o.Input == nil && o.Resize == nil {
		return nil
	}
	q := newQueue(feedBytes)
	q.rest = floodRest
	return &feed{q: q, output: o.Output, input: o.Input, resize: o.Resize, idle: o.Idle, done: make(chan struct{})}
}

func (f *feed) run() {
	defer close(f.done)
	giveWay()
	var buf []byte
	for {
		it, p, ok := f.q.take(buf)
		if !ok {
			return
		}
		buf = p
		if f.err == nil {
			f.err = f.call(it, p)
		}
	}
}

// giveWay lowers the priority of the calling goroutine's thread, which ends with it. A model of a terminal takes more
// work for a byte than the relay; where processors are short it is the model that waits, and in the end leaves bytes out
// and says so, not the user.
func giveWay() {
	const nicer = 10
	runtime.LockOSThread() // and never unlocked: a priority once lowered cannot be raised again
	tid := unix.Gettid()
	// The kernel's answer is 20 minus the nice value.
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, 20-now+nicer)
	}
}

// call keeps a panic of a callback from ending the process: the user's session is not to suffer from what
// looks on. No further callback is made, and the session's result says so.
func (f *feed) call(it item, p []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read terminal: panic: %v\n%s", r, debug.Stack())
		}
	}()
	switch {
	case it.kind == itemOutput && f.output != nil:
		f.output(p, it.time, it.skipped)
	case it.kind == itemInput && f.input != nil:
		f.input(p, it.time, it.skipped)
	case it.kind == itemResize && f.resize != nil:
		f.resize(it.cols, it.rows, it.time)
	case it.kind == itemIdle:
		f.idle(it.time)
	}
	return nil
}
