package wrapper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// The front and the monitor talk over a stream socket: first the start request with its descriptors, then
// messages of eight bytes, a kind and an argument (32 bit, little endian). The end of the stream is the
// end of the other process.

type msgKind uint32

const (
	// To the monitor.
	msgGo         msgKind = iota + 1 // arg: 1 start the command in the foreground of the terminal, 0 in the background
	msgSignal                        // arg: signal | target<<8
	msgForeground                    // arg: 1 the command's group, 0 the monitor's
	msgContinue                      // SIGCONT to the command's group

	// To the front.
	msgReady     // the session exists; waiting for msgGo
	msgPID       // arg: the command's pid
	msgFailed    // arg: stage<<16 | errno; the monitor ends
	msgStopped   // arg: signal that stopped the command
	msgContinued // the command runs again
	msgExit      // arg: wait status
)

// Targets of msgSignal.
const (
	toGroup      = iota // the command's process group
	toForeground        // the terminal's foreground group, else the command's
)

// Stages of msgFailed.
const (
	stageSession = iota
	stageCgroup
	stageDir
	stageExec
)

type message struct {
	kind msgKind
	arg  uint32
}

// startRequest is what the monitor needs besides the descriptors. Byte slices because argv and environment
// are bytes to the kernel, and JSON strings would change those that are not UTF-8.
type startRequest struct {
	Path   []byte
	Argv   [][]byte
	Env    [][]byte
	Dir    []byte
	PTY    bool // descriptors 3, 4, 5 follow: slave, the user's terminal, terminal state
	Cgroup bool // one more descriptor follows: the cgroup's directory
}

// maxRequest is more than the kernel lets any argv and environment be (6 MiB, a quarter of the largest
// _STK_LIM_MAX use), after base64.
const maxRequest = 16 << 20

func (r startRequest) descriptors() int {
	n := 3
	if r.PTY {
		n += 3
	}
	if r.Cgroup {
		n++
	}
	return n
}

// sendRequest sends the start request. sock must be blocking.
func sendRequest(sock int, r startRequest, fds []int) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode start request: %w", err)
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	// The descriptors travel with the first byte of the length.
	if err := unix.Sendmsg(sock, head, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("send descriptors to monitor: %w", err)
	}
	for len(body) > 0 {
		n, err := unix.SendmsgN(sock, body, nil, nil, unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("send start request to monitor: %w", err)
		}
		body = body[n:]
	}
	return nil
}

var errRequest = errors.New("malformed start request")

// receiveRequest is the monitor's side. The descriptors are close-on-exec.
func receiveRequest(sock int) (startRequest, []int, error) {
	var r startRequest
	head := make([]byte, 4)
	oob := make([]byte, unix.CmsgSpace(8*4))
	n, oobn, _, _, err := unix.Recvmsg(sock, head, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
	if err != nil {
		return r, nil, fmt.Errorf("receive start request: %w", err)
	}
	if n != len(head) {
		return r, nil, io.ErrUnexpectedEOF
	}
	var fds []int
	cmsgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return r, nil, fmt.Errorf("receive descriptors: %w", err)
	}
	for i := range cmsgs {
		got, err := unix.ParseUnixRights(&cmsgs[i])
		if err != nil {
			return r, nil, fmt.Errorf("receive descriptors: %w", err)
		}
		fds = append(fds, got...)
	}
	size := binary.LittleEndian.Uint32(head)
	if size > maxRequest {
		return r, fds, errRequest
	}
	body := make([]byte, size)
	for got := 0; got < len(body); {
		n, err := unix.Read(sock, body[got:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return r, fds, fmt.Errorf("receive start request: %w", err)
		}
		if n == 0 {
			return r, fds, io.ErrUnexpectedEOF
		}
		got += n
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fds, fmt.Errorf("decode start request: %w", err)
	}
	if len(fds) != r.descriptors() || len(r.Argv) == 0 {
		return r, fds, errRequest
	}
	return r, fds, nil
}

func writeMessage(w io.Writer, m message) error {
	b := binary.LittleEndian.AppendUint32(nil, uint32(m.kind))
	b = binary.LittleEndian.AppendUint32(b, m.arg)
	_, err := w.Write(b)
	return err
}

func readMessage(r io.Reader) (message, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return message{}, err
	}
	return message{msgKind(binary.LittleEndian.Uint32(b[:])), binary.LittleEndian.Uint32(b[4:])}, nil
}

// readMessages delivers messages until the stream ends, then closes the channel.
func readMessages(f *os.File) <-chan message {
	ch := make(chan message, 16)
	go func() {
		defer close(ch)
		for {
			m, err := readMessage(f)
			if err != nil {
				return // the end of the other process is what the closed channel says
			}
			ch <- m
		}
	}()
	return ch
}
