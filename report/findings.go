package report

import (
	"fmt"
	"strings"

	"github.com/ryehq/rye/verify"
)

// An Explanation says what a finding code means and what to do about it. docs/findings.md and rye verify
// --explain are made from the same list.
type Explanation struct {
	Code  string
	Means string
	Do    string
}

// Explanations are all finding codes, the gravest kinds first.
func Explanations() []Explanation {
	return []Explanation{
		{verify.ExecUnapproved, "Something ran, was changed or was used, and rye saw nothing that allowed it: no answer on the terminal, no rule in a permission file, no mode, no entry of the assistant's built-in list of harmless commands. With reason not-asked, the assistant may have such a list of its own and the kernel cannot tell, so the action is indeterminate. With reason edit, the assistant's own process changed a file that no call in its record asks for.",
			"Read the command. If a rule or setting of yours should have covered it, rye rules shows what was in force; if a question was answered, the recording (session.cast) shows it. Otherwise treat it as an action nobody approved."},
		{verify.ExecDiffers, "What ran is not what the approved text says: another text, a program that the text does not name and nothing it names started (unexplained), a script whose content was changed between the approval and the run (script-changed, script-rewritten), an environment that puts other code into it (environment), or another folder than its record says (folder).",
			"Compare both records. For a script, rye show --type file.digest has its hash at the prompt and at the run, and file.open who wrote it between."},
		{verify.DeniedButRan, "A person or a rule said no, or the assistant itself recorded a refusal (own-record), and it ran anyway, at once or later without another question.",
			"Treat what ran as unauthorised. With reason rule, the assistant did not apply a deny rule to this form of the command; do not rely on that rule."},
		{verify.RuleExceeded, "A standing rule covered the command, but what ran goes beyond the rule's words: an allowed sed, git, find or xargs that started another program, a prefix that ends at a program which only wraps another (env, timeout), or a command let through by an \"always\" whose words do not match it.",
			"Narrow the rule or remove it (rye rules names the file and line); rules for programs that can run other programs allow those too."},
		{verify.RuleSelfGranted, "A standing permission came about without an answer of yours: a rule, hook, server, default mode or further folder appeared in a permission file during the session (new-rule), or the session wrote a file that decides about permissions (file) or about its own requests: rye's policy, the answers to requests, the CA (policy).",
			"Look at the file before the next session, and remove what you did not grant."},
		{verify.ExecBeforeApproval, "It ran, or its file was written, before the answer that should have allowed it.",
			"The question came too late to matter. Report it to the assistant's vendor; look at what had already happened when you answered."},
		{verify.AskedDiffers, "What the model asked for is not what ran: a hook, or the assistant itself, rewrote it on the way. A warning, because what was shown or what the hook allowed is what ran; a discrepancy where no hook was there to do it (no-hook).",
			"If you run such a hook, this is its work. If not, find it: rye rules lists hooks with the file they stand in."},
		{verify.TranscriptDiffers, "The assistant's own record leaves out, invents or alters something: a command that it recorded and that never ran (never-ran), another command (other-command), a run that it did not record (not-recorded), a change that no process wrote (no-write: a warning, since writing the same content again writes nothing).",
			"Do not rely on that transcript alone for this session."},
		{verify.ApprovalUnattested, "The screen showed an approval, and no key, click or paste from your side of the terminal stands behind it. A program can draw such a line; a hook, a remote client or a classifier can give the answer.",
			"If a hook or another client answers for you, this is expected. Otherwise look at the recording at that moment."},
		{verify.ApprovalHidden, "What the person could see is not all of what was approved: part was cut off or scrolled away (cut), characters did not show (hidden-characters), line breaks made it ambiguous (wrapped), or the text runs code that it does not show (opaque-code, alias-or-function: information only).",
			"Read the whole command in rye show before relying on the approval."},
		{verify.BinaryShadowed, "The approved name ran as something else: from a place the assistant can write (writable-place), a file made during this session (planted), another file than earlier with the same PATH (moved), a link or a copy under another name.",
			"Check the executable that ran; its path and SHA-256 are in the record of the exec."},
		{verify.SandboxClaimBroken, "The assistant recorded a sandbox and the kernel saw it not hold: a command outside any sandbox, a write outside the write roots, or a connection with the network off.",
			"Do not count on that sandbox on this machine. The record of the turn (turn.context) has what was claimed."},
		{verify.NetDeniedReached, "The policy denied a request to a host, or wanted approval for it, and the session reached that host another way: a direct connection, known by its TLS hello or by what DNS had answered, or a tunnel to the bare address or by another name.",
			"Treat the destination as reached without permission. With rye wrap --enforce the kernel refuses the direct way."},
		{verify.NetBypass, "A connection went past the proxy that the session was told to use. A warning, since programs may ignore proxy variables. Reasons: the protocol; attempt (it failed); dns (another name server than the machine's); NO_PROXY and proxy-env-changed (the program was started with other variables than the session was given); name-mismatch (one name to the proxy, another inside the connection); inherited (a socket that was open before the command started); refused (enforcement let nothing through: information only); past-enforcement (a discrepancy: the kernel should have refused it).",
			"If the proxy is a control, use rye wrap --enforce, or close the direct way in the network; a variable is a request."},
		{verify.WriteOutside, "Something outside the workspace was created, written, renamed or deleted. Places that grant power later (shell start-up files, git hooks, cron, PATH folders) raise it by one level; a path that the approved text names lowers it.",
			"Look at the path. A build cache is ordinary; a start-up file is not."},
		{verify.SecretRead, "A file that holds credentials or keys was opened.",
			"If the approved command has no need of it, replace the credential; rye does not see where the bytes went if it was through a connection that was already open."},
		{verify.Delegated, "Something outside the session was asked to act: a container engine, the service manager, a terminal multiplexer, an SSH agent, a scheduler. The hand-over is recorded; what it led to is not.",
			"Look at that service's own log for the same moment."},
		{verify.EscapeAttempt, "A process did something that can take it out of sight or give it power over others: left the cgroup, changed namespaces, traced a process, loaded a kernel program, opened a raw socket. Many tools do one of these for good reasons; the severity says how unusual it is.",
			"Check that the program that did it is one that should (debuggers, sandboxes, container tools)."},
		{verify.ApprovedNotRun, "Allowed, and never ran. Information only.",
			"Nothing, unless you rely on its effect."},
		{verify.EvidenceLost, "The evidence for this action has a hole: events lost, arguments cut, a prompt that could not be read, an action only one witness tells of, a kernel gap. The action is indeterminate, neither verified nor a discrepancy.",
			"rye doctor lists the machine's gaps. For a prompt, look at the recording; for lost events, the machine was too busy or the ring too small."},
		{verify.LedgerBroken, "The ledger does not prove itself: a record was changed, taken out or cannot be read, the signature or the recording does not fit, or it is shorter than a noted tree head. Everything in it is indeterminate.",
			"Do not use this session as evidence. The message names the first bad record; what stands before it may still be provable one record at a time (rye prove)."},
	}
}

// Explain returns the explanation of a code.
func Explain(code string) (Explanation, bool) {
	for _, e := range Explanations() {
		if e.Code == code {
			return e, true
		}
	}
	return Explanation{}, false
}

// Text writes an explanation for a terminal.
func (e Explanation) Text(width int) string {
	if width <= 0 {
		width = 100
	}
	var b strings.Builder
	b.WriteString(e.Code + "\n  ")
	wrap(&b, e.Means, width, 2, 2)
	b.WriteString("  What to do: ")
	wrap(&b, e.Do, width, 14, 2)
	return b.String()
}

// Markdown is docs/findings.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Findings

Codes are stable; scripts may match on them. ` + "`rye verify --explain CODE`" + ` prints one paragraph of this page. Each finding has a
severity: **discrepancy** (not covered, or contradicts what was allowed) makes its action and session a discrepancy; **warning**
(an effect of what was allowed that it does not name) and **info** are shown and leave the verdict alone. Some say *indeterminate*
instead: then the evidence does not decide, and rye does not either.
`)
	for _, e := range Explanations() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n*What to do.* %s\n", e.Code, e.Means, e.Do)
	}
	return b.String()
}
