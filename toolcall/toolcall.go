// Package toolcall says what a tool call of a model asks for: which command, which files. The same call is seen
// by several witnesses (the assistant's transcript, the model's own stream), and all of them have to read it in
// the same way, or a difference between them would mean nothing.
//
// It is pure and imports event.
package toolcall

import (
	"encoding/json"
	"strings"

	"github.com/ryehq/rye/event"
)

// An Input is a call as the model wrote it.
type Input struct {
	Namespace string   // of an MCP tool, where the API gives it apart
	Name      string   //
	Arguments []byte   // JSON, or text where the tool takes text
	Argv      []string // of a local_shell_call
	CWD       string   // likewise
}

// Describe fills in what c asks for, in the vocabulary of the assistant that c.Agent names. Tools of an agent
// that is not known are told by their names.
func Describe(c *event.ToolCall, in Input) {
	switch {
	case c.Agent == "claude", c.Agent != "codex" && claudeTool(in.Name):
		describeClaude(c, in)
	default:
		describeCodex(c, in)
	}
	if strings.HasPrefix(in.Name, "mcp__") {
		c.Kind = "mcp"
	}
}

func claudeTool(name string) bool {
	switch name {
	case "Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "WebFetch", "WebSearch":
		return true
	}
	return false
}

func describeClaude(c *event.ToolCall, in Input) {
	c.Tool, c.Kind = in.Name, "other"
	var a struct {
		Command      string `json:"command"`
		Description  string `json:"description"`
		NoSandbox    bool   `json:"dangerouslyDisableSandbox"`
		FilePath     string `json:"file_path"`
		NotebookPath string `json:"notebook_path"`
		Path         string `json:"path"`
		URL          string `json:"url"`
	}
	_ = json.Unmarshal(in.Arguments, &a) // a tool's input may have any shape
	switch in.Name {
	case "Bash":
		c.Kind, c.Command, c.Justification, c.Escalated = "command", a.Command, a.Description, a.NoSandbox
	case "Edit", "Write", "MultiEdit":
		c.Kind, c.Paths = "edit", []string{a.FilePath}
	case "NotebookEdit":
		c.Kind, c.Paths = "edit", []string{a.NotebookPath}
	case "Read", "NotebookRead", "Grep", "Glob", "LS":
		for _, p := range []string{a.FilePath, a.NotebookPath, a.Path} {
			if p != "" {
				c.Paths = append(c.Paths, p)
			}
		}
	case "WebFetch", "WebSearch":
		c.Kind, c.Command = "fetch", a.URL
	}
}

func describeCodex(c *event.ToolCall, in Input) {
	c.Tool, c.Kind = in.Name, "other"
	if in.Argv != nil {
		c.Tool, c.Kind, c.Argv, c.CWD = "local_shell", "command", in.Argv, in.CWD
		c.Command = argvText(c.Argv)
		return
	}
	if strings.HasPrefix(in.Namespace, "mcp__") {
		c.Tool, c.Kind = in.Namespace+"__"+in.Name, "mcp"
		return
	}
	var a struct {
		Cmd           string          `json:"cmd"`
		Command       json.RawMessage `json:"command"`
		Workdir       string          `json:"workdir"`
		Permissions   string          `json:"sandbox_permissions"`
		Escalated     bool            `json:"with_escalated_permissions"`
		Justification string          `json:"justification"`
		Chars         string          `json:"chars"`
	}
	_ = json.Unmarshal(in.Arguments, &a) // arguments the model made up need not be JSON
	c.CWD, c.Justification = a.Workdir, a.Justification
	c.Escalated = a.Escalated || a.Permissions == "require_escalated"
	switch in.Name {
	case "exec_command":
		c.Kind, c.Command = "command", a.Cmd
	case "shell_command":
		c.Kind, c.Command = "command", rawText(a.Command)
	case "shell", "container.exec", "local_shell":
		c.Kind = "command"
		if json.Unmarshal(a.Command, &c.Argv) == nil {
			c.Command = argvText(c.Argv)
		} else {
			c.Command = rawText(a.Command)
		}
	case "write_stdin":
		c.Kind, c.Command = "stdin", a.Chars
	case "apply_patch":
		c.Kind, c.Paths = "edit", patchPaths(string(in.Arguments))
	}
	// A patch given to the shell is taken out before any shell runs.
	if c.Kind == "command" && strings.HasPrefix(strings.TrimSpace(c.Command), "apply_patch ") {
		c.Kind, c.Paths = "edit", patchPaths(c.Command)
	}
}

// argvText is what Codex shows of an argv: the script of a three word shell call, else the words.
func argvText(argv []string) string {
	if len(argv) == 3 && (argv[1] == "-lc" || argv[1] == "-c") {
		return argv[2]
	}
	return strings.Join(argv, " ")
}

func patchPaths(patch string) []string {
	var paths []string
	for line := range strings.Lines(patch) {
		for _, prefix := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				paths = append(paths, strings.TrimRight(rest, "\r\n"))
			}
		}
	}
	return paths
}

func rawText(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	return string(b)
}
