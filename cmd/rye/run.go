package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/loader"
	"github.com/ryehq/rye/verify"
	"github.com/ryehq/rye/wrapper"
)

// run is rye from top to bottom:
//
//	kernel ─► collector ─┐
//	terminal ─► screen ──┼─► witness ─► ledger ─► verify ─► summary
//	transcripts ─► ingest┘
//
// It returns the wrapped command's exit status. Whatever fails of the recording, the command runs; what
// is then missing is said here and in the ledger.
func run(c wrapConfig) (int, error) {
	started := time.Now()
	id := newSessionID(started)
	path, err := wrapper.LookPath(c.argv[0], os.Environ(), "")
	if err != nil {
		return 0, err
	}
	start, err := sessionStart(c, id, path, started)
	if err != nil {
		return 0, err
	}

	handed, err := inherited(c.net.enforce) // first: what is opened from here on is rye's own
	if err != nil {
		return 0, err
	}
	capture, err := captureOf(c.net.capture)
	if err != nil {
		return 0, err
	}
	nw, err := startNetwork(c.net, id)
	if err != nil {
		return 0, err
	}
	defer nw.close()

	hk, err := startHooks(c)
	if err != nil {
		return 0, err
	}
	defer hk.close()

	// The kernel witness comes first: nothing of the command runs unseen.
	gates, err := nw.gates(c.net)
	if err != nil {
		return 0, err
	}
	obs := startObserver(id, loader.Options{Capture: capture, Enforce: gates, Tier: loader.Tier(c.tier)})
	defer obs.close()
	warnObserver(os.Stderr, obs)
	if err := nw.enforced(c.net, obs); err != nil {
		obs.remove(nil)
		return 0, err
	}

	book := openBook(c, id) // ledger, recording and index; usable, and silent, when they could not be made
	defer book.close()
	w := newWitness(book, obs, start)
	nw.to(w.said)
	hk.serve(w.said, w.member)
	obs.to(w.kernel) // held back until session.start stands in the ledger

	scan := newScanner(w.screen)
	w.scan = scan
	began := boottime()
	sess, err := wrapper.Start(wrapper.Options{
		Argv: hk.args(c.argv), Path: path, Env: hk.environ(nw.environ()), CgroupFD: obs.cgroupFD(), BeforeExec: obs.root,
		Recording: book.recording(), Clock: boottime,
		Output: scan.output, Input: scan.input, Resize: scan.resize, Idle: scan.idle,
	})
	if err != nil {
		w.abandon()
		book.discard()
		obs.drain()
		return 0, err
	}
	w.begin(began, start, obs.about, sess, slices.Concat(nw.begin(began, handed), hk.begin(began))) // session.start, observer.attached, then everything that was held back
	packets := startCapture(obs, book, w, began)
	stop := w.background() // renews checkpoints, follows transcripts
	before := ownCPU()

	res, waitErr := sess.Wait()
	scan.close(boottime())
	survivors := w.stragglers(c.wait)
	stop()
	if err := obs.drain(); err != nil {
		w.degrade(fmt.Sprintf("kernel events could not be read to the end: %v", err))
	}
	totals := packets.drain()
	if err := nw.close(); err != nil {
		w.degrade(fmt.Sprintf("the proxy did not end well: %v", err))
	}
	if n := hk.close(); n > 0 {
		w.degrade(fmt.Sprintf("%d words to the hooks' socket came from processes that are not the session's", n))
	}
	w.transcripts() // what the assistant wrote last
	w.emit(w.follow.lineage())
	w.emit(w.perms.look("change"))
	w.end(sessionEnd(res, waitErr, survivors, time.Since(started), book.recordingDigest(), totals))
	self := usage{CPUNS: ownCPU() - before, MaxRSS: ownRSS()}
	if obs.coll != nil {
		self.Events = obs.coll.Read()
	}

	if err := book.finish(); err != nil {
		warn(os.Stderr, err)
	}
	obs.remove(survivors)
	report := judgeBook(book)
	book.indexResult(report, start, res)
	if !c.quiet {
		printSummary(os.Stderr, book, report, w.counts())
	}
	if c.jsonSummary != "" {
		if err := writeSummary(c.jsonSummary, book, report, res, self); err != nil {
			warn(os.Stderr, err)
		}
	}
	if waitErr != nil {
		return 0, waitErr
	}
	return res.ExitCode, nil
}

// judgeBook runs the same verify.Verify on the ledger file that anyone can run later.
func judgeBook(b *book) *verify.Report {
	if b.dir == "" {
		return nil
	}
	r, err := judge(b.dir, b.home)
	if err != nil {
		warn(os.Stderr, err)
		return nil
	}
	return r
}

func sessionStart(c wrapConfig, id, path string, now time.Time) (*event.SessionStart, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find working folder: %w", err)
	}
	userHome, _ := os.UserHomeDir()
	host, _ := os.Hostname()
	s := &event.SessionStart{
		ID: id, Name: c.name, Command: c.argv, Path: path, CWD: cwd, Workspace: workspace(cwd), Home: userHome,
		TempDir: envOr("TMPDIR", "/tmp"), SearchDir: os.Getenv("PATH"), UID: os.Getuid(), GID: os.Getgid(),
		Host: host, Kernel: kernelRelease(), BootID: bootID(), WallTime: now.Format(time.RFC3339Nano), Rye: version,
	}
	s.AssistantHomes = []string{codexHome(userHome), claudeHome(userHome), filepath.Join(userHome, ".copilot")}
	return s, nil
}

func sessionEnd(res wrapper.Result, waitErr error, survivors []event.Survivor, took time.Duration, digest string, packets *event.PacketTotals) *event.SessionEnd {
	e := &event.SessionEnd{
		ExitCode: res.ExitCode, Signal: res.SignalName(), DurationNS: uint64(took), Survivors: survivors,
		InputBytes: res.InputBytes, RecordingSHA256: digest, Packets: packets,
	}
	for _, err := range []error{waitErr, res.Recording, res.Callbacks} {
		if err != nil {
			e.DegradedBy = append(e.DegradedBy, err.Error())
		}
	}
	return e
}

// writeSummary writes --json-summary.
func writeSummary(file string, b *book, r *verify.Report, res wrapper.Result, self usage) error {
	s := summaryOf(b, r, res, self)
	data, err := marshalIndent(s)
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return errors.Join(fmt.Errorf("write summary: %w", err))
	}
	return nil
}
