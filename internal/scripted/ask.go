package scripted

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// An option is one line to choose in a dialog.
type option struct {
	label string
	mark  string // drawn before it when it is chosen, with the number
	plain string // the same when it is not
	yes   bool
	save  bool // "always"
}

// Waiting is the start of the terminal title that is set each time a dialog waits for a key: a driver of the
// terminal knows from it that a question, and not a repaint, stands there.
const Waiting = "\x1b]0;scripted: question "

// ask draws the dialog and waits for an answer: a digit, arrows and Enter, or Esc.
func (p *player) ask(s *Step) (bool, error) {
	head, options := p.part.dialog(p, s)
	chosen, inline := 0, p.script.As == ""
	// gone takes the dialog away. An inline one leaves the command standing, and whatever was above it.
	gone := clear
	if inline {
		gone = fmt.Sprintf("\x1b[%dA\r\x1b[J", len(options)+2)
	}
	draw := func(again bool) {
		var b strings.Builder
		switch {
		case !inline:
			b.WriteString(clear + head)
		case again:
			fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", len(options))
		default:
			b.WriteString(head)
		}
		for i, o := range options {
			if i == chosen {
				fmt.Fprintf(&b, "%s%d. %s\x1b[0m\r\n", o.mark, i+1, o.label)
			} else {
				fmt.Fprintf(&b, "%s%d. %s\r\n", o.plain, i+1, o.label)
			}
		}
		if f, ok := p.part.(interface{ footer() string }); ok {
			b.WriteString(f.footer())
		}
		io.WriteString(p.out, b.String())
	}
	state, err := term.MakeRaw(int(p.tty.Fd()))
	if err == nil {
		defer term.Restore(int(p.tty.Fd()), state)
	}
	draw(false)
	for _, argv := range s.Before {
		time.Sleep(300 * time.Millisecond) // let the dialog be read first
		var env []string
		if len(argv) == 1 { // a text: as the assistant runs one
			argv, env = p.part.command(s, argv[0])
		}
		p.run(&Step{}, argv, env, io.Discard)
	}
	if s.Forge {
		time.Sleep(300 * time.Millisecond)
		io.WriteString(p.out, gone+p.part.answered(s, options[0]))
		return true, nil
	}
	p.asked++
	fmt.Fprintf(p.out, "%s%d\x07", Waiting, p.asked)
	for {
		k, err := p.key()
		if err != nil {
			return false, err
		}
		no := option{}
		switch {
		case k == "\x1b[A" && chosen > 0:
			chosen--
			draw(true)
			continue
		case k == "\x1b[B" && chosen < len(options)-1:
			chosen++
			draw(true)
			continue
		case k == "\x1b" || k == "\x03":
			io.WriteString(p.out, gone+p.part.answered(s, no))
			return false, nil
		case k == "\r":
		case len(k) == 1 && k[0] >= '1' && int(k[0]-'1') < len(options):
			chosen = int(k[0] - '1')
		default:
			continue
		}
		o := options[chosen]
		if o.save {
			if err := p.part.always(s); err != nil {
				return false, err
			}
		}
		io.WriteString(p.out, gone+p.part.answered(s, o))
		return o.yes, nil
	}
}

const clear = "\x1b[H\x1b[2J"

// key reads one key: a byte, or a whole escape sequence when its bytes come together.
func (p *player) key() (string, error) {
	b := make([]byte, 1)
	if _, err := p.tty.Read(b); err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	if b[0] != '\x1b' {
		return string(b), nil
	}
	k := "\x1b"
	for len(k) < 8 && ready(p.tty) {
		if _, err := p.tty.Read(b); err != nil {
			break
		}
		k += string(b)
		if b[0] >= '@' && b[0] <= '~' && b[0] != '[' {
			break
		}
	}
	return k, nil
}

func ready(f *os.File) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, 40)
	return err == nil && n > 0
}

// width is the terminal's.
func (p *player) width() int {
	if w, _, err := term.GetSize(int(p.tty.Fd())); err == nil && w > 20 {
		return w
	}
	return 80
}

// rows lays a text out in rows of a width, between words, as assistants do.
func rows(text string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		row := ""
		for i, w := range strings.Split(line, " ") {
			if i > 0 && len([]rune(row))+1+len([]rune(w)) > width {
				out, row = append(out, row), ""
			} else if i > 0 {
				row += " "
			}
			for len([]rune(row))+len([]rune(w)) > width {
				r := []rune(w)
				n := width - len([]rune(row))
				out, row, w = append(out, row+string(r[:n])), "", string(r[n:])
			}
			row += w
		}
		out = append(out, row)
	}
	return out
}

// plain is an assistant that rye does not know: a title, the command, numbered options.
type plain struct{}

func (plain) dialog(_ *player, s *Step) (string, []option) {
	var b strings.Builder
	b.WriteString("\r\n\x1b[1mBash command\x1b[0m\r\n\r\n")
	for line := range strings.SplitSeq(shown(s), "\n") {
		b.WriteString("  " + line + "\r\n")
	}
	b.WriteString("\r\nDo you want to proceed?\r\n")
	const mark, none = "\x1b[36m❯ ", "  "
	options := []option{{label: "Yes", mark: mark, plain: none, yes: true}}
	if s.Always != "" {
		options = append(options, option{label: "Yes, and don't ask again for " + s.Always, mark: mark, plain: none, yes: true, save: true})
	}
	return b.String(), append(options, option{label: "No", mark: mark, plain: none})
}

func shown(s *Step) string {
	switch {
	case s.Show != "":
		return s.Show
	case s.Edit != nil:
		return s.Edit.Path
	}
	return s.Ask
}

func (plain) answered(*Step, option) string { return "" }
func (plain) command(_ *Step, text string) ([]string, []string) {
	return []string{"bash", "-c", text}, nil
}
func (plain) called(*Step) error                { return nil }
func (plain) ended(*Step, string, string) error { return nil }
func (plain) always(*Step) error                { return nil }
