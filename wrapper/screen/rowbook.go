package screen

// A rowBook keeps which decision rows were told, so that one that is painted again (scrolled, wrapped
// at another width, in an overlay) is not told again.
type rowBook struct {
	told    map[string]int // by key: how many
	order   []string       // for forgetting the oldest
	shown   []decisionRow  // on the screen at the last look
	resized bool           // since the last row that was new
}

const maxRowsTold = 1024

func newRowBook() rowBook { return rowBook{told: make(map[string]int)} }

// fresh returns the rows that are on the screen more often than they were told.
func (b *rowBook) fresh(rows []decisionRow) []decisionRow {
	b.shown = rows
	seen := make(map[string]int)
	var out []decisionRow
	for _, r := range rows {
		seen[r.key]++
		if seen[r.key] <= b.told[r.key] {
			continue
		}
		if b.resized && b.remains(r) {
			b.took(r)
			continue
		}
		out = append(out, r)
	}
	if len(out) > 0 {
		b.resized = false
	}
	return out
}

func (b *rowBook) took(r decisionRow) {
	if b.told[r.key] == 0 {
		b.order = append(b.order, r.key)
	}
	b.told[r.key]++
	if len(b.order) > maxRowsTold {
		delete(b.told, b.order[0])
		b.order = b.order[1:]
	}
}

// lowest is the last decision row on the screen.
func (b *rowBook) lowest() (decisionRow, bool) {
	if len(b.shown) == 0 {
		return decisionRow{}, false
	}
	return b.shown[len(b.shown)-1], true
}

// remains reports whether r is what is left of a row that was told. Codex measures control characters
// wrongly and loses letters when it wraps such a row at a new width.
func (b *rowBook) remains(r decisionRow) bool {
	for key := range b.told {
		if len(r.key) >= len(key)/2 && subsequence(r.key, key) {
			return true
		}
	}
	return false
}

func subsequence(short, long string) bool {
	i := 0
	for j := 0; j < len(long) && i < len(short); j++ {
		if short[i] == long[j] {
			i++
		}
	}
	return i == len(short)
}
