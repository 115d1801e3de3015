package grid

import "bytes"

const (
	maxLinks = 1024 // addresses kept at one time, of both screens
	maxLink  = 512  // bytes kept of one
)

// Link returns the address that a cell leads to, "" for none (OSC 8).
func (g *Grid) Link(c Cell) string {
	if c.link == 0 || int(c.link) > len(g.links) {
		return ""
	}
	return g.links[c.link-1]
}

// osc obeys OSC 8 ; parameters ; address: what is printed from now on leads there. The state machine
// hands the number over with the text. Titles and the other commands draw nothing.
func (g *Grid) osc(number int, data []byte) {
	if number != 8 {
		return
	}
	parts := bytes.SplitN(data, []byte{';'}, 3) // the address may hold a ; itself
	if len(parts) < 3 || len(parts[2]) == 0 {
		g.penLink = 0
		return
	}
	address := string(parts[2][:min(len(parts[2]), maxLink)])
	for i, l := range g.links {
		if l == address {
			g.penLink = uint16(i + 1)
			return
		}
	}
	if len(g.links) == maxLinks {
		g.sweepLinks()
	}
	if len(g.links) == maxLinks {
		g.penLink = maxLinks // as many on the screen at one time: the last one stands for the rest
		return
	}
	g.links = append(g.links, address)
	g.penLink = uint16(len(g.links))
}

// sweepLinks forgets the addresses that no cell leads to.
func (g *Grid) sweepLinks() {
	renamed := make([]uint16, len(g.links)+1)
	kept := g.links[:0:0]
	for _, b := range []*buffer{&g.main, &g.alt} {
		for y := range b.lines {
			for x := range b.lines[y].cells {
				c := &b.lines[y].cells[x]
				if c.link == 0 {
					continue
				}
				if renamed[c.link] == 0 {
					kept = append(kept, g.links[c.link-1])
					renamed[c.link] = uint16(len(kept))
				}
				c.link = renamed[c.link]
			}
		}
	}
	g.links = kept
}
