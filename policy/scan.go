package policy

import "bytes"

// A scanner looks for all literals of a bundle in one pass. It is Wu and Manber's: the last two of the
// first m bytes of a window say how far the window may move, m being the shortest literal's length, so
// that most bytes are never looked at.
type scanner struct {
	needles []needle
	short   []int // needles below minNeedle bytes: searched one by one
	m       int
	shift   []uint8
	bucket  map[uint16][]int // by the pair at the window's end: needles
	reach   int              // bytes that a match may extend over, lookahead included
}

const minNeedle = 4

// pairOf is where a pair of bytes stands in the tables. The high bits are left out: the tables of text
// then fit the first cache, and a needle is compared in full anyway.
func pairOf(a, b byte) uint16 { return uint16(a&0x7f)<<7 | uint16(b&0x7f) }

// A needle is a text of body_contains, or the beginning of a secret.
type needle struct {
	text   []byte
	secret *detector // nil for body_contains
}

func newScanner(needles []needle) scanner {
	s := scanner{needles: needles, bucket: map[uint16][]int{}, reach: 1}
	for i, n := range needles {
		reach := len(n.text)
		if n.secret != nil {
			reach += lookahead
		}
		s.reach = max(s.reach, reach)
		if len(n.text) < minNeedle {
			s.short = append(s.short, i)
		} else if s.m == 0 || len(n.text) < s.m {
			s.m = len(n.text)
		}
	}
	if s.m == 0 {
		return s
	}
	s.m = min(s.m, 200)
	s.shift = make([]uint8, 1<<14)
	for i := range s.shift {
		s.shift[i] = uint8(s.m - 1)
	}
	for i, n := range needles {
		if len(n.text) < minNeedle {
			continue
		}
		for at := 0; at+1 < s.m; at++ {
			pair := pairOf(n.text[at], n.text[at+1])
			s.shift[pair] = min(s.shift[pair], uint8(s.m-2-at))
			if at == s.m-2 {
				s.bucket[pair] = append(s.bucket[pair], i)
			}
		}
	}
	return s
}

// scan marks in found the needles that begin in b[from:to]. b goes on after to so far as it is known:
// at least reach bytes, or to the end of the body.
func (s *scanner) scan(b []byte, from, to int, found []bool) {
	for _, i := range s.short {
		n := &s.needles[i]
		part := b[:min(to+len(n.text)-1, len(b))]
		for at := from; !found[i] && at < len(part); at++ {
			next := bytes.Index(part[at:], n.text)
			if next < 0 {
				break
			}
			at += next
			found[i] = s.matches(b, at, n)
		}
	}
	if s.m == 0 {
		return
	}
	last := min(to, len(b)-s.m+1) // windows begin before it
	end := s.m - 2
	for at := from; at < last; {
		pair := pairOf(b[at+end], b[at+end+1])
		if move := s.shift[pair]; move > 0 {
			at += int(move)
			continue
		}
		for _, i := range s.bucket[pair] {
			if !found[i] && s.matches(b, at, &s.needles[i]) {
				found[i] = true
			}
		}
		at++
	}
}

func (s *scanner) matches(b []byte, at int, n *needle) bool {
	if !bytes.HasPrefix(b[at:], n.text) {
		return false
	}
	d := n.secret
	if d == nil {
		return true
	}
	if !d.inWord && at > 0 && alnum(b[at-1]) && !escape(b, at-1) {
		return false
	}
	rest := b[at+len(n.text):]
	return d.check(rest[:min(len(rest), lookahead)])
}

// escape says that b[at] is the letter of a JSON escape (\n, \t …), which stands for white space and not
// for a letter. The byte before may be out of sight; then a letter is a letter.
func escape(b []byte, at int) bool {
	return at > 0 && b[at-1] == '\\' && (b[at] == 'n' || b[at] == 't' || b[at] == 'r')
}
