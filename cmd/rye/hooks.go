package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ryehq/rye/event"
	"github.com/ryehq/rye/ingest"
)

// hooks is `rye wrap --hooks`: the assistant tells rye of each tool call, before it is asked about, when it is
// asked about and after it is done. The hooks are given on the command line, for this session alone; what they
// run is `rye hook`, which hands the assistant's words to this process over a socket and waits until they are
// written down. It never says anything to the assistant: a hook without output changes nothing.
type hooks struct {
	agent   string
	command string // what the assistant runs, as shell text
	dir     string // of the socket, when it is one of our own
	l       *net.UnixListener
	argv    []string
	said    func(event.Event)
	member  func(pid int) (event.ProcessKey, bool)

	mu    sync.Mutex
	last  map[string]string // newest call id by thread and tool: a PermissionRequest has none
	stray int               // words from processes that are not the session's
	wg    sync.WaitGroup
}

// hookEvents are the ones that are listened for.
var hookEvents = []string{"PreToolUse", "PermissionRequest", "PostToolUse"}

const (
	maxHook   = 8 << 20         // bytes of one word
	hookPause = 5 * time.Second // how long one may take to be told
)

// startHooks opens the socket and adds the hooks to the command line. A nil *hooks is a session without.
func startHooks(c wrapConfig) (*hooks, error) {
	if !c.hooks {
		return nil, nil
	}
	home, err := openHome()
	if err != nil {
		return nil, err
	}
	h := &hooks{last: map[string]string{}}
	switch base := baseName(c.argv[0]); base {
	case "claude", "codex":
		h.agent = base
	default:
		return nil, fmt.Errorf("--hooks is for claude and codex, not for %s", base)
	}
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	if err := h.listen(home.dir); err != nil {
		return nil, err
	}
	h.command = shellWord(exe) + " hook " + h.agent
	if h.agent == "claude" {
		h.command += " " + shellWord(h.l.Addr().String())
		h.argv, err = claudeHooks(c.argv, h.command)
	} else {
		// Codex asks the user to trust the text of a hook, once: it must be the same in every session.
		h.argv = codexHookFlags(c.argv, h.command)
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// listen opens the socket where only this user can reach it. Its name has to be short.
func (h *hooks) listen(home string) error {
	dir := filepath.Join(home, "run")
	if len(dir) > 70 || os.MkdirAll(dir, 0o700) != nil || os.Chmod(dir, 0o700) != nil {
		tmp, err := os.MkdirTemp("", "rye-hooks-")
		if err != nil {
			return fmt.Errorf("make socket: %w", err)
		}
		dir, h.dir = tmp, tmp
	}
	name := filepath.Join(dir, fmt.Sprintf("hooks-%d.sock", os.Getpid()))
	_ = os.Remove(name) // of a process of this number that was killed
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	h.l = l
	if err := os.Chmod(name, 0o600); err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	return nil
}

// claudeHooks adds the hooks to Claude Code's --settings; a --settings of the user's is kept in it.
func claudeHooks(argv []string, command string) ([]string, error) {
	settings := map[string]any{}
	out := append([]string(nil), argv...)
	if v := settingsFlag(argv); v != "" {
		b := []byte(v)
		if !strings.HasPrefix(strings.TrimSpace(v), "{") {
			var err error
			if b, err = os.ReadFile(v); err != nil {
				return nil, fmt.Errorf("read settings: %w", err)
			}
		}
		if err := json.Unmarshal(b, &settings); err != nil {
			return nil, fmt.Errorf("read settings: %w", err)
		}
		for i, a := range out {
			if strings.HasPrefix(a, "--settings=") {
				out = append(out[:i], out[i+1:]...)
				break
			}
			if a == "--settings" && i+1 < len(out) {
				out = append(out[:i], out[i+2:]...)
				break
			}
		}
	}
	all, _ := settings["hooks"].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for _, e := range hookEvents {
		list, _ := all[e].([]any)
		all[e] = append(list, map[string]any{"matcher": "*", "hooks": []any{map[string]any{"type": "command", "command": command, "timeout": 10}}})
	}
	settings["hooks"] = all
	b, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	return append([]string{out[0], "--settings", string(b)}, out[1:]...), nil
}

// codexHookFlags adds the hooks to Codex's configuration. Codex asks the user once whether to trust them.
func codexHookFlags(argv []string, command string) []string {
	out := []string{argv[0]}
	for _, e := range hookEvents {
		out = append(out, "-c", fmt.Sprintf("hooks.%s=[{matcher=\"*\",hooks=[{type=\"command\",command=%s,timeout=10}]}]", e, tomlString(command)))
	}
	return append(out, argv[1:]...)
}

func tomlString(s string) string {
	b, _ := json.Marshal(s) // a basic string of TOML is one of JSON
	return string(b)
}

// shellWord makes one word of a text for sh.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// args is the command line to run.
func (h *hooks) args(argv []string) []string {
	if h == nil {
		return argv
	}
	return h.argv
}

// hookSocket is the variable that names the socket where the command line does not.
const hookSocket = "RYE_HOOK_SOCKET"

// environ adds the socket to the command's environment; nil stands for this process's own.
func (h *hooks) environ(env []string) []string {
	if h == nil || h.agent == "claude" {
		return env
	}
	if env == nil {
		env = os.Environ()
	}
	return append(env, hookSocket+"="+h.l.Addr().String())
}

// begin tells what was set up: it is not the user's, and has to be known for rye's own.
func (h *hooks) begin(now uint64) []event.Event {
	if h == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(h.command))
	r := &event.RulesLoaded{Agent: h.agent, Path: "rye wrap --hooks", Level: "rye", SHA256: hex.EncodeToString(sum[:]), At: "start"}
	for _, e := range hookEvents {
		r.Rules = append(r.Rules, event.Rule{ID: "rye-" + e, Decision: "allow", Tool: "hook", Pattern: h.command})
	}
	return []event.Event{event.New(now, nil, r)}
}

// serve writes down what is told until close.
func (h *hooks) serve(said func(event.Event), member func(pid int) (event.ProcessKey, bool)) {
	if h == nil {
		return
	}
	h.said, h.member = said, member
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		for {
			c, err := h.l.AcceptUnix()
			if err != nil {
				return // closed
			}
			h.wg.Add(1)
			go func() { defer h.wg.Done(); h.take(c) }()
		}
	}()
}

// take reads one word, writes it down and says so.
func (h *hooks) take(c *net.UnixConn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(hookPause))
	pid, ok := peerPID(c)
	var proc event.ProcessKey
	if ok {
		proc, ok = h.member(pid)
	}
	if !ok {
		h.mu.Lock()
		h.stray++
		h.mu.Unlock()
		return
	}
	b, cut, err := readBounded(c, maxHook)
	if err != nil || cut {
		return
	}
	call, err := ingest.Hook(h.agent, b)
	if err != nil {
		return
	}
	now := boottime()
	h.identify(call, now)
	e := event.New(now, nil, call.Body)
	if proc != (event.ProcessKey{}) {
		e.Proc = &proc
	}
	h.said(e)
	c.Write([]byte("ok\n"))
}

// identify gives a question the id of the call that it is about.
func (h *hooks) identify(w *ingest.HookCall, now uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch b := w.Body.(type) {
	case *event.ToolCall:
		b.AskedTimeNS = now
		h.last[b.Thread+"\x00"+w.Tool] = b.ID
	case *event.ToolResult:
		if b.ID == "" {
			b.ID = h.last[b.Thread+"\x00"+w.Tool]
		}
	}
}

func peerPID(c *net.UnixConn) (int, bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil || err != nil {
		return 0, false
	}
	return int(cred.Pid), int(cred.Uid) == os.Getuid()
}

// close ends it and returns how many words came from processes that are not the session's.
func (h *hooks) close() int {
	if h == nil || h.l == nil {
		return 0
	}
	h.l.Close() // also removes the socket
	h.wg.Wait()
	if h.dir != "" {
		os.RemoveAll(h.dir)
	}
	return h.stray
}
