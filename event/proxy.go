package event

// TypeProxyDecision is a request that came through rye's proxy, or a tunnel asked of it.
const TypeProxyDecision Type = "proxy.decision"

// ProxyDecision is what the policy said of one request and what became of it, written when the exchange
// is over. Bodies, header values and query strings are not in it.
type ProxyDecision struct {
	ID          string   `json:"id"`                 // request id, also in the 403 the client got
	Method      string   `json:"method"`             //
	Host        string   `json:"host"`               // host:port
	Path        string   `json:"path,omitempty"`     // without the query; "" for a tunnel
	SNI         string   `json:"sni,omitempty"`      // name in the TLS handshake of a tunnel, or of one that failed
	Proto       string   `json:"proto"`              // the client's: HTTP/1.1, HTTP/2.0
	Shim        string   `json:"shim,omitempty"`     // the upstream's base URL, when it came by the API shim and not by the proxy
	Upgraded    string   `json:"upgraded,omitempty"` // websocket: every message of the client's was judged before it was sent on
	Messages    uint64   `json:"messages,omitempty"` // that many; the decision is the last one's
	Tunnel      bool     `json:"tunnel,omitempty"`   // passed on unopened: nothing inside was seen or judged
	Decision    string   `json:"decision"`           // allow, deny, require_approval
	Rule        string   `json:"rule,omitempty"`     // "" when the bundle's default decided
	RuleVersion string   `json:"rule_version,omitempty"`
	Bundle      string   `json:"bundle"` // id@version
	Reason      string   `json:"reason,omitempty"`
	Logged      []string `json:"logged,omitempty"`   // log rules that matched
	Unjudged    string   `json:"unjudged,omitempty"` // why part of the request could not be judged

	// A require_approval rule matched: Decision is what became of it.
	Approval    string `json:"approval,omitempty"`     // id, for rye approve and rye deny
	AnsweredBy  string `json:"answered_by,omitempty"`  // who answered, "" while it waits
	AnsweredAt  string `json:"answered_at,omitempty"`  // RFC 3339
	AnsweredFor string `json:"answered_for,omitempty"` // "this request", or until when for the rule and host

	// Local is the client's end of its connection to the proxy, address:port: the kernel's net.connect
	// with the same local address says which process it was.
	Local string `json:"local"`

	RequestBytes   uint64 `json:"request_bytes"`             // body bytes read from the client
	RequestSHA256  string `json:"request_sha256,omitempty"`  // hex, of those bytes; "" for a tunnel
	RequestCut     bool   `json:"request_cut,omitempty"`     // the body was not read to its end
	Status         int    `json:"status,omitempty"`          // answered to the client
	ResponseBytes  uint64 `json:"response_bytes,omitempty"`  // body bytes passed on
	ResponseSHA256 string `json:"response_sha256,omitempty"` // hex, of those bytes
	ResponseCut    bool   `json:"response_cut,omitempty"`    // the response did not reach its end
	ToolCalls      uint64 `json:"tool_calls,omitempty"`      // tool.call events made from the answer
	ResponseUnread string `json:"response_unread,omitempty"` // why calls in the answer may be missing from them
	DurationNS     uint64 `json:"duration_ns"`               //
	Error          string `json:"error,omitempty"`           // class of failure: upstream-connect, upstream-tls, …
}

func (*ProxyDecision) eventType() Type { return TypeProxyDecision }
