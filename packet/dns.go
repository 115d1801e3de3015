package packet

import (
	"net/netip"
	"strings"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ryehq/rye/event"
)

const (
	maxQuestions = 8
	maxAnswers   = 64
	maxName      = 255 // RFC 1035, 2.3.4; in its text form a byte may take more
)

// readDNS reads one message. One that does not parse is an event all the same: it went to or came from the
// port for DNS.
func readDNS(b []byte, k streamKey, proto, cut string) *event.NetDNS {
	e := &event.NetDNS{Proto: proto, Local: k.local.String(), Remote: k.remote.String(), Sent: k.out, Cut: cut}
	m, err := decodeDNS(b)
	if err != "" {
		if e.Cut == "" {
			e.Cut = err
		}
		if len(b) >= 4 {
			e.ID, e.Answer = uint32(b[0])<<8|uint32(b[1]), b[2]&0x80 != 0
		}
		return e
	}
	e.ID, e.Answer = uint32(m.ID), m.QR
	if m.QR && m.ResponseCode != layers.DNSResponseCodeNoErr {
		e.Code = m.ResponseCode.String()
	}
	for i, q := range m.Questions {
		if i == maxQuestions {
			e.Cut = "more questions than are kept"
			break
		}
		e.Questions = append(e.Questions, event.DNSQuestion{Name: dnsName(q.Name), Kind: q.Type.String()})
	}
	for i := range m.Answers {
		if i == maxAnswers {
			e.Cut = "more answers than are kept"
			break
		}
		e.Answers = append(e.Answers, dnsAnswer(&m.Answers[i]))
	}
	if m.TC && e.Cut == "" {
		e.Cut = "truncated by the server"
	}
	return e
}

// decodeDNS is gopacket's decoder with its failures as a word. It has had panics on hostile input.
func decodeDNS(b []byte) (m *layers.DNS, problem string) {
	defer func() {
		if recover() != nil {
			m, problem = nil, "not a DNS message"
		}
	}()
	m = new(layers.DNS)
	if err := m.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
		return nil, "not a DNS message, or not all of one"
	}
	return m, ""
}

func dnsAnswer(r *layers.DNSResourceRecord) event.DNSAnswer {
	a := event.DNSAnswer{Name: dnsName(r.Name), Kind: r.Type.String()}
	switch r.Type {
	case layers.DNSTypeA, layers.DNSTypeAAAA:
		if addr, ok := netip.AddrFromSlice(r.IP); ok {
			a.Value = addr.Unmap().String()
		}
	case layers.DNSTypeCNAME:
		a.Value = dnsName(r.CNAME)
	case layers.DNSTypePTR:
		a.Value = dnsName(r.PTR)
	case layers.DNSTypeNS:
		a.Value = dnsName(r.NS)
	case layers.DNSTypeMX:
		a.Value = dnsName(r.MX.Name)
	case layers.DNSTypeSRV:
		a.Value = dnsName(r.SRV.Name)
	}
	return a
}

// dnsName is a name in one form: a trailing dot says nothing.
func dnsName(b []byte) string {
	return strings.TrimSuffix(string(b[:min(len(b), maxName)]), ".")
}
