package event

// The network side of a session: what its programs were told to use, and what their own packets and
// sockets show.
const (
	TypePolicyApplied Type = "policy.applied"
	TypeNetRefused    Type = "net.refused"
	TypeNetInherited  Type = "net.inherited"
	TypeNetDNS        Type = "net.dns"
	TypeNetTLSHello   Type = "net.tls_hello"
)

// PolicyApplied says that a bundle of rules holds from now on, for which proxy, and what else was arranged
// for the session's network. A session without one ran without rye's proxy.
type PolicyApplied struct {
	At      string `json:"at"`     // start, change
	Bundle  string `json:"bundle"` // id@version
	SHA256  string `json:"sha256"` // hex, of the bundle's text
	From    string `json:"from"`   // file, or "built in"
	Rules   int    `json:"rules"`
	Default string `json:"default"`         // what holds when no rule matches
	Error   string `json:"error,omitempty"` // at change: why the file was refused; then the fields above are the old bundle's

	State   string            `json:"state,omitempty"`     // rye's folder, with the policy, the answers to requests and the CA's key
	Proxy   string            `json:"proxy,omitempty"`     // address:port the session was told to use
	Shims   map[string]string `json:"shims,omitempty"`     // variable -> address:port of the shim it was pointed at
	CA      string            `json:"ca,omitempty"`        // hex SHA-256 of the CA certificate
	Opens   []string          `json:"opens,omitempty"`     // domains whose connections are opened; subdomains included
	Via     string            `json:"via,omitempty"`       // the user's own proxy behind this one, user information cut
	Was     map[string]string `json:"was,omitempty"`       // variables of the user that were replaced, with their values, user information cut
	DNS     []string          `json:"resolvers,omitempty"` // name servers of the machine
	Enforce *Enforcement      `json:"enforce,omitempty"`   // nil: a variable is a request, nothing is refused
}

// Enforcement is what the kernel lets the session reach beside the proxy; all else is refused.
type Enforcement struct {
	Ports []uint32 `json:"ports,omitempty"` // on loopback
	DNS   string   `json:"dns"`             // none, system, all
	Hooks []string `json:"hooks"`           // attached programs
	Gaps  []Gap    `json:"gaps,omitempty"`  // what they are known not to refuse
}

// NetRefused is something that enforcement did not let through.
type NetRefused struct {
	Family  string   `json:"family"` // inet, inet6
	Proto   string   `json:"proto"`  // tcp, udp, icmp, raw, …
	Local   string   `json:"local,omitempty"`
	Remote  string   `json:"remote,omitempty"` // address:port; "" for a socket that could not be made
	How     string   `json:"how"`              // connect, send, socket, packet
	Count   uint64   `json:"count"`
	Repeats bool     `json:"repeats,omitempty"` // count is of refusals after the first, which is a record of its own
	Marks   []string `json:"marks,omitempty"`
}

// NetInherited is a network socket that the wrapped command was given open: what goes through it passes
// neither a connect nor the hooks of the session's cgroup.
type NetInherited struct {
	FD     int    `json:"fd"`
	Family string `json:"family"`
	Proto  string `json:"proto"`
	Local  string `json:"local,omitempty"`
	Remote string `json:"remote,omitempty"`
	Closed bool   `json:"closed,omitempty"` // enforcement took it away before the command started
}

// NetDNS is a DNS message that the session sent or received, read from the packet itself.
type NetDNS struct {
	Proto     string        `json:"proto"`            // udp, tcp
	Local     string        `json:"local"`            // address:port
	Remote    string        `json:"remote"`           // address:port of the other end, the name server for a client
	Sent      bool          `json:"sent,omitempty"`   // by the session
	Answer    bool          `json:"answer,omitempty"` // a response
	ID        uint32        `json:"id"`
	Code      string        `json:"code,omitempty"` // of a response that is not "no error"
	Questions []DNSQuestion `json:"questions,omitempty"`
	Answers   []DNSAnswer   `json:"answers,omitempty"`
	Cut       string        `json:"cut,omitempty"` // why it is not all of the message
}

// A DNSQuestion asks for one kind of record of one name.
type DNSQuestion struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // A, AAAA, …
}

// A DNSAnswer is one record of an answer.
type DNSAnswer struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Value string `json:"value"` // an address or a name; "" for other kinds
}

// NetTLSHello is the first message of a TLS client: the name it asks for, in the clear.
type NetTLSHello struct {
	Proto  string   `json:"proto"`            // tcp, quic
	Local  string   `json:"local"`            // address:port
	Remote string   `json:"remote"`           // address:port
	Sent   bool     `json:"sent,omitempty"`   // by the session; else by a client of it
	Name   string   `json:"name,omitempty"`   // server_name; with ech the outer one, not the server's
	ALPN   []string `json:"alpn,omitempty"`   //
	ECH    bool     `json:"ech,omitempty"`    // encrypted client hello: the true name is not readable
	Unread string   `json:"unread,omitempty"` // why the name could not be read
}

func (*PolicyApplied) eventType() Type { return TypePolicyApplied }
func (*NetRefused) eventType() Type    { return TypeNetRefused }
func (*NetInherited) eventType() Type  { return TypeNetInherited }
func (*NetDNS) eventType() Type        { return TypeNetDNS }
func (*NetTLSHello) eventType() Type   { return TypeNetTLSHello }
