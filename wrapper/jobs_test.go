package wrapper

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shell is an interactive bash in an outer terminal, for what only a job control shell shows. "rye" stands for
// "rye wrap --" in its command lines.
func shell(t *testing.T, rows, cols int) *outer {
	t.Helper()
	need(t, "bash")
	bin := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("rye", "#!/bin/sh\n"+envWrap+"=1 exec "+testBinary(t)+" \"$@\"\n")
	write("inputrc", "set enable-bracketed-paste off\n")
	x := newOuter(t, outerOptions{direct: true, rows: rows, cols: cols, env: []string{
		"PS1=prompt> ", "HISTFILE=", "INPUTRC=" + bin + "/inputrc", "PATH=" + bin + ":" + os.Getenv("PATH")}},
		"bash", "--norc", "--noprofile", "-i")
	x.expect("prompt> ")
	return x
}

// run types a command and waits for the next prompt.
func (x *outer) run(line string) {
	x.t.Helper()
	x.send(line + "\r")
	x.expect(`\nprompt> `)
}

// TestStopItself: the command stops itself, the shell says so, and after fg it goes on in a terminal of the new
// size.
func TestStopItself(t *testing.T) {
	for _, sig := range []string{"TSTP", "STOP", "TTIN"} {
		t.Run(sig, func(t *testing.T) {
			x := shell(t, 30, 90)
			stop := script(t, "echo one; kill -"+sig+" $$; echo resumed; stty size")
			x.send("rye sh " + stop + "\r")
			x.expect("one")
			x.expect(`\+  Stopped`)
			x.expect("prompt> ")
			x.run("stty -a | grep -w icanon >/dev/null && echo cooked-$?")
			x.resize(31, 91)
			x.send("fg\r")
			x.expect("resumed")
			x.expect("31 91")
			x.expect("prompt> ")
			x.run("echo status $?")
			x.send("exit\r")
			x.wantExit(0)
		})
	}
}

// TestControlZ stops and continues a program that does nothing about it.
func TestControlZ(t *testing.T) {
	x := shell(t, 24, 80)
	x.send("rye cat\r")
	time.Sleep(100 * time.Millisecond)
	x.send("first\r")
	x.expect("first\r\nfirst\r\n")
	for range 3 {
		x.send("\x1a")
		x.expect(`\+  Stopped`)
		x.expect("prompt> ")
		x.run("echo $((6*7))")
		x.send("fg\r")
		x.expect("rye cat")
		time.Sleep(50 * time.Millisecond)
		x.send("again\r")
		x.expect("again\r\nagain\r\n")
	}
	x.send("\x04")
	x.expect("prompt> ")
	x.send("echo status $?\r")
	x.expect("status 0")
}

// TestControlC ends the command and not the shell around it.
func TestControlC(t *testing.T) {
	x := shell(t, 24, 80)
	x.send("rye sh -c 'trap \"echo got it; exit 5\" INT; echo READY; while :; do sleep 0.05; done'\r")
	x.expect("\nREADY")
	x.send("\x03")
	x.expect("got it")
	x.expect("prompt> ")
	x.send("echo status $?\r")
	x.expect("status 5")
}

// TestBackgroundJob: output comes through, reading the terminal stops the job, and fg gives it the terminal.
func TestBackgroundJob(t *testing.T) {
	x := shell(t, 24, 80)
	x.send("rye sh -c 'sleep 0.2; echo from behind; read x; echo got $x' &\r")
	x.expect("from behind\r\n") // and not \r\r\n
	// bash tells of a job's change before the next prompt.
	for range 100 {
		x.run("jobs")
		if strings.Contains(string(x.output()), "Stopped") {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	x.send("fg\r")
	x.expect("rye sh")
	time.Sleep(50 * time.Millisecond)
	x.send("hello\r")
	x.expect("got hello")
	x.expect("prompt> ")
	if out := string(x.output()); !strings.Contains(out, "Stopped") {
		t.Errorf("the job was not stopped when it read: %q", out)
	}
}

// TestBackgroundAfterStop: bg lets the job run on without the terminal.
func TestBackgroundAfterStop(t *testing.T) {
	x := shell(t, 24, 80)
	done := filepath.Join(t.TempDir(), "done")
	x.send("rye sh -c 'echo one; kill -TSTP $$; echo two; stty sane < /dev/tty; echo x > " + done + "'\r")
	x.expect("\none")
	x.expect(`\+  Stopped`)
	x.expect("prompt> ")
	x.send("bg\r")
	x.expect("two")
	x.run("echo")
	time.Sleep(100 * time.Millisecond)
	if _, err := os.Stat(done); err == nil {
		t.Error("a background job set the terminal")
	}
	x.send("fg\r")
	x.expect("rye sh")
	x.expect("prompt> ")
	if _, err := os.Stat(done); err != nil {
		t.Error("the job did not end")
	}
	x.run("stty -a | grep -w icanon > /dev/null || echo raw")
}

// TestPipeline: in "rye wrap -- x | less" the keyboard is less's.
func TestPipeline(t *testing.T) {
	x := shell(t, 24, 80)
	x.send("rye sh -c 'echo data; sleep 0.3; echo err >&2' | (read d; read answer < /dev/tty; echo \"$d+$answer\")\r")
	time.Sleep(100 * time.Millisecond)
	x.send("key\r")
	x.expect("data\\+key")
	x.expect("prompt> ")
	// A command that does read the terminal gets it.
	x.send("rye sh -c 'read a < /dev/tty; echo \"<$a>\"' | cat\r")
	time.Sleep(150 * time.Millisecond)
	x.send("mine\r")
	x.expect("<mine>")
	x.expect("prompt> ")
	// Ctrl-C reaches every part of a pipeline.
	x.send("rye sh -c 'trap \"echo caught >&2; exit 1\" INT; echo READY >&2; while :; do sleep 0.05; done' | sleep 30\r")
	x.expect("\nREADY")
	x.send("\x03")
	x.expect("caught\r\n")
	x.expect("prompt> ")
	// And Ctrl-Z stops it.
	x.send("rye sh -c 'echo READY >&2; exec sleep 30' | sleep 30\r")
	x.expect("\nREADY")
	x.send("\x1a")
	x.expect(`\+  Stopped`)
	x.expect("prompt> ")
	x.run("kill %1; wait 2>/dev/null")
}

// TestTypeAhead: what is typed for the shell while a pipeline runs stays for the shell.
func TestTypeAhead(t *testing.T) {
	x := shell(t, 24, 80)
	x.send("rye sleep 0.4 | cat\r")
	time.Sleep(150 * time.Millisecond)
	x.send("echo $((40+2))\r")
	x.expect("\n42")
}

// TestOrphanedStop: without a shell that could continue it, a stop is ignored, as the kernel does it for an orphaned
// group.
func TestOrphanedStop(t *testing.T) {
	x := newOuter(t, outerOptions{}, "sh", "-c", "echo one; kill -TSTP $$; echo two; read x; echo got $x; exit 3")
	x.expect("two")
	x.send("a\r")
	x.expect("got a")
	x.wantExit(3)
	x.wantRestored()
}

// TestContinuedByOther: another process continues the command that rye had stopped with.
func TestContinuedByOther(t *testing.T) {
	x := newOuter(t, outerOptions{}, "sh", "-c", "(sleep 0.4; kill -CONT $$) & kill -STOP $$; echo running; exit 4")
	x.expect("running")
	x.wantExit(4)
	x.wantRestored()
	if x.stops == 0 {
		t.Error("rye did not stop with the command")
	}
}

// TestKilledWhileStopped: rye is gone, so the command gets the hangup of its terminal and is continued to see it.
func TestKilledWhileStopped(t *testing.T) {
	x := shell(t, 24, 80)
	dir := t.TempDir()
	pidFile, hup := dir+"/pid", dir+"/hup"
	x.send(fmt.Sprintf("rye sh -c 'trap \"echo hup > %s; exit\" HUP; echo $$ > %s; read x; sleep 1'\r", hup, pidFile))
	pid := pidFrom(t, pidFile)
	x.send("\x1a")
	x.expect(`\+  Stopped`)
	wantState(t, pid, 'T')
	x.send("kill -9 %1\r")
	wantGone(t, pid)
	if _, err := os.Stat(hup); err != nil {
		t.Error("the command was not told with SIGHUP")
	}
}

// TestKilled: after kill -9 of rye, or a panic in some other part of it, the monitor restores the terminal and
// undoes modes; the command is hung up on.
func TestKilled(t *testing.T) {
	for _, how := range []string{"kill -9", "panic"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			pidFile := dir + "/pid"
			o := outerOptions{}
			if how == "panic" {
				o.fault = "panic"
			}
			x := newOuter(t, o, "sh", "-c", fmt.Sprintf(`printf '\033[?1049h\033[?2004h'; stty raw -echo; echo $$ > %s; exec sleep 30`, pidFile))
			if how == "kill -9" {
				x.expect("2004h")
				pidFrom(t, pidFile)
				time.Sleep(50 * time.Millisecond)
				x.signal(unix.SIGKILL)
				pid := pidFrom(t, pidFile)
				<-x.exited
				wantGone(t, pid)
				x.expect(`\x1b\[\?2004l\x1b\[\?1049l`)
			}
			<-x.exited
			for end := time.Now().Add(patienceInTests); x.termios() != x.before && time.Now().Before(end); {
				time.Sleep(2 * time.Millisecond)
			}
			x.wantRestored()
		})
	}
}

// TestMonitorKilled: the command's parent is killed, perhaps by the command.
func TestMonitorKilled(t *testing.T) {
	x := newOuter(t, outerOptions{}, "sh", "-c", "stty raw; kill -9 $PPID; sleep 30")
	x.wantExit(125)
	x.wantRestored()
	if r := x.result(); !strings.Contains(r.Err, "monitor") {
		t.Errorf("result %+v", r)
	}
}

// TestSignalsAreForwarded: to the command, which may handle them; then the terminal is restored.
func TestSignalsAreForwarded(t *testing.T) {
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			x := newOuter(t, outerOptions{}, "sh", "-c", "ulimit -c 0; stty raw -echo; echo READY; exec sleep 30")
			x.expect("READY")
			time.Sleep(20 * time.Millisecond)
			x.signal(sig)
			x.wantExit(128 + int(sig))
			x.wantRestored()
		})
		t.Run(unix.SignalName(sig)+" handled", func(t *testing.T) {
			name := strings.TrimPrefix(unix.SignalName(sig), "SIG")
			x := newOuter(t, outerOptions{}, "sh", "-c", fmt.Sprintf(`trap 'echo caught %s; exit 7' %s; stty raw -echo; echo READY; while :; do sleep 0.05; done`, name, name))
			x.expect("READY")
			x.signal(sig)
			x.expect("caught " + name)
			x.wantExit(7)
			x.wantRestored()
		})
	}
}

// TestSignalOnce: one signal to rye is one signal to the command.
func TestSignalOnce(t *testing.T) {
	need(t, "bash")
	x := newOuter(t, outerOptions{}, "bash", "-c", `n=0; trap 'n=$((n+1))' INT; echo READY; end=$((SECONDS+2)); while [ $n = 0 ] && [ $SECONDS -lt $end ]; do sleep 0.05; done; sleep 0.3; echo "count $n"`)
	x.expect("READY")
	x.signal(unix.SIGINT)
	x.expect("count 1")
	x.wantExit(0)
}

// TestOwnGroupKilled: a command that kills its whole process group does not kill rye.
func TestOwnGroupKilled(t *testing.T) {
	x := newOuter(t, outerOptions{}, "sh", "-c", `trap "" TERM; kill -TERM 0; echo alive`)
	x.expect("alive")
	x.wantExit(0)
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGKILL} {
		x = newOuter(t, outerOptions{}, "sh", "-c", fmt.Sprintf("stty raw; kill -%d 0; sleep 9", int(sig)))
		x.wantExit(128 + int(sig))
		x.wantRestored()
		if r := x.result(); r.Signal != sig {
			t.Errorf("result %+v", r)
		}
	}
}

// TestHangup: the terminal window is closed.
func TestHangup(t *testing.T) {
	dir := t.TempDir()
	x := newOuter(t, outerOptions{}, "sh", "-c", fmt.Sprintf(
		`trap "" HUP; echo $$ > %s/pid; echo READY; cat > /dev/null; echo "eof $?" > %s/eof; exit 3`, dir, dir))
	x.expect("READY")
	pid := pidFrom(t, dir+"/pid")
	x.master.Close()
	x.slave.Close()
	<-x.exited
	wantGone(t, pid)
	// The command, which ignores SIGHUP, reads the end of its input from a terminal that is gone.
	b, err := os.ReadFile(dir + "/eof")
	if err != nil || !strings.HasPrefix(string(b), "eof ") {
		t.Errorf("after the hangup: %q, %v", b, err)
	}
}

// TestNohup: what rye inherited as ignored stays ignored.
func TestNohup(t *testing.T) {
	x := newOuter(t, outerOptions{direct: true}, "sh", "-c",
		`trap "" HUP; `+envWrap+`=1 exec `+testBinary(t)+` sh -c 'echo READY; sleep 0.5; echo still here'`)
	x.expect("READY")
	x.signal(unix.SIGHUP)
	x.expect("still here")
	x.wantExit(0)
}

// TestStoppedFromOutside: rye itself is stopped, with its terminal in raw mode, which the shell undoes; after fg all is
// as before.
func TestStoppedFromOutside(t *testing.T) {
	x := shell(t, 24, 80)
	pidFile := t.TempDir() + "/pid"
	x.send("rye sh -c 'stty -echo; echo $$ > " + pidFile + "; read a; echo \"<$a>\"'\r")
	rye := parent(t, parent(t, pidFrom(t, pidFile)))
	if err := unix.Kill(rye, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	x.expect(`\+  Stopped`)
	x.expect("prompt> ")
	x.run("stty -a | grep -w icanon > /dev/null && echo cooked")
	x.send("fg\r")
	x.expect("rye sh")
	time.Sleep(50 * time.Millisecond)
	x.send("secret\r")
	x.expect("<secret>")
	x.expect("prompt> ")
	if out := string(x.output()); strings.Count(out, "secret") != 1 {
		t.Errorf("the terminal was not raw after fg: %q", out)
	}
}

// TestShellInside: an interactive shell under rye does its own job control; rye is not stopped by it.
func TestShellInside(t *testing.T) {
	need(t, "bash")
	x := newOuter(t, outerOptions{env: []string{"PS1=inner> ", "HISTFILE=", "INPUTRC=/dev/null"}}, "bash", "--norc", "--noprofile", "-i")
	x.expect("inner> ")
	x.send("sleep 30\r")
	time.Sleep(100 * time.Millisecond)
	x.send("\x1a")
	x.expect(`\+  Stopped +sleep 30`)
	x.expect("inner> ")
	x.send("fg\r")
	x.expect("sleep 30")
	time.Sleep(100 * time.Millisecond)
	x.send("\x03")
	x.expect("inner> ")
	x.send("sleep 0.2 & wait; tty; exit 4\r")
	x.wantExit(4)
	x.wantRestored()
	if x.stops != 0 {
		t.Errorf("rye stopped %d times", x.stops)
	}
}

// TestPagerInPipeline: less takes its text from the pipe and its keys from the terminal, whichever of the two rye runs.
func TestPagerInPipeline(t *testing.T) {
	need(t, "less")
	for _, line := range []string{"seq 1000 | rye less", "rye seq 1000 | less"} {
		x := shell(t, 10, 40)
		x.send(line + "\r")
		x.expect("9\r\n:")
		x.send("G")
		x.expect("1000")
		x.send("q")
		x.expect("prompt> ")
		x.send("stty -a | grep -ow '.icanon\\|icanon'; exit 3\r")
		x.expect("icanon")
		if out := string(x.output()); strings.Contains(out, "-icanon") {
			t.Errorf("%s: the terminal is left in raw mode", line)
		}
		x.wantExit(3)
	}
}

func TestGPGTTY(t *testing.T) {
	x := newOuter(t, outerOptions{direct: true}, "sh", "-c",
		`GPG_TTY=$(tty) `+envWrap+`=1 exec `+testBinary(t)+` sh -c '[ "$GPG_TTY" = "$(tty)" ] && echo same; env | grep -c GPG_TTY'`)
	x.wantExit(0)
	if out := string(x.output()); out != "same\r\n1\r\n" {
		t.Errorf("output %q", out)
	}
	x = newOuter(t, outerOptions{env: []string{"GPG_TTY=/dev/null"}}, "sh", "-c", `echo "$GPG_TTY"`)
	x.wantExit(0)
	if out := string(x.output()); out != "/dev/null\r\n" {
		t.Errorf("output %q", out)
	}
}
