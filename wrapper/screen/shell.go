package screen

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainCommands splits a script into the words of its commands, the way Codex does before it looks
// at its rules: only a list of commands joined by && || ; | whose words are literal text is split.
// Anything else (a redirection, an expansion, a subshell, an assignment, a glob, &) is not, and ok
// is false: rules for the programs in it do not apply.
func plainCommands(script string) (commands [][]string, ok bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(script), "")
	if err != nil || len(file.Last) > 0 || len(file.Stmts) == 0 {
		return nil, false
	}
	for _, s := range file.Stmts {
		if commands, ok = plainStmt(commands, s); !ok {
			return nil, false
		}
	}
	return commands, true
}

func plainStmt(commands [][]string, s *syntax.Stmt) ([][]string, bool) {
	if s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 || len(s.Comments) > 0 {
		return nil, false
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt && c.Op != syntax.Pipe {
			return nil, false // |& is not among them
		}
		commands, ok := plainStmt(commands, c.X)
		if !ok {
			return nil, false
		}
		return plainStmt(commands, c.Y)
	case *syntax.CallExpr:
		if len(c.Assigns) > 0 || len(c.Args) == 0 {
			return nil, false
		}
		var words []string
		for _, w := range c.Args {
			text, ok := literal(w, scriptSpecial)
			if !ok {
				return nil, false
			}
			words = append(words, text)
		}
		return append(commands, words), true
	}
	return nil, false
}

// Characters that make a word more than its letters. A quoter may leave = and the like bare; in a
// script of the user's they are reason enough for Codex not to look inside.
const (
	scriptSpecial = "\\*?[]{}~=#^!$`"
	quoterSpecial = "\\*?[]{}~$`"
)

// literal returns a word that is literal text, quoted or not, with none of special outside of quotes.
func literal(w *syntax.Word, special string) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, special) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, q := range p.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "\\$`") {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// shellWords returns the words of a saved prefix. Codex shows them quoted for the shell, except that
// a script it could not split is shown as it is: that stays one word.
func shellWords(prefix string) []string {
	if commands, ok := plainCommands(prefix); ok && len(commands) == 1 {
		return commands[0]
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(prefix), "")
	if err != nil || len(file.Stmts) != 1 {
		return []string{prefix}
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(file.Stmts[0].Redirs) > 0 || file.Stmts[0].Background || file.Stmts[0].Negated {
		return []string{prefix}
	}
	var words []string
	for _, w := range call.Args {
		text, ok := literal(w, quoterSpecial)
		if !ok {
			return []string{prefix}
		}
		words = append(words, text)
	}
	return words
}

// commandWords returns the words of every command in a script as they are written, redirections left
// out, nil for a script that is none.
func commandWords(script string) [][]string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	var out [][]string
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			var words []string
			for _, w := range call.Args {
				words = append(words, strings.Fields(script[w.Pos().Offset():w.End().Offset()])...)
			}
			out = append(out, words)
		}
		return true
	})
	return out
}
