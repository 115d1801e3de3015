package policy

import "bytes"

// A scanner looks for all literals of a bundle in one pass. The first m bytes of every needle hold m-1
// pairs of bytes, so that one of them begins at a position that m-1 divides: only those positions are
// looked at, and no look waits for the one before it.
type scanner struct {
	needles []needle
	short   []int // needles below minNeedle bytes: searched one by one
	m       int
	table   []uint16 // pair -> 1 + index in pairs, 0 for none
	pairs   [][]at
	reach   int // bytes that a match may extend over, lookahead included
}

// An at is a pair's place in a needle.
type at struct{ needle, offset int }

const maxStride = 16

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
	s := scanner{needles: needles, reach: 1}
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
	s.m = min(s.m, maxStride)
	s.table = make([]uint16, 1<<14)
	for i, n := range needles {
		if len(n.text) < minNeedle {
			continue
		}
		for off := 0; off+1 < s.m; off++ {
			pair := pairOf(n.text[off], n.text[off+1])
			if s.table[pair] == 0 {
				s.pairs = append(s.pairs, nil)
				s.table[pair] = uint16(len(s.pairs)) // there are only 1<<14
			}
			list := &s.pairs[s.table[pair]-1]
			*list = append(*list, at{i, off})
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
	last := min(to+s.m-2, len(b)-1)
	for q := from; q < last; q += s.m - 1 {
		i := s.table[pairOf(b[q], b[q+1])]
		if i == 0 {
			continue
		}
		for _, p := range s.pairs[i-1] {
			start := q - p.offset
			if start >= from && start < to && !found[p.needle] && s.matches(b, start, &s.needles[p.needle]) {
				found[p.needle] = true
			}
		}
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
