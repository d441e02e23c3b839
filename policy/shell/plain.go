package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainList returns the commands of a script that consists of literal words, joined by &&, ||, ; and
// |. For any other script, unclear names the first other element.
func plainList(file *syntax.File, parseErr error) (list [][]string, unclear string) {
	if parseErr != nil {
		return nil, "it cannot be parsed: " + parseErr.Error()
	}
	for _, stmt := range file.Stmts {
		if list, unclear = appendPlain(list, stmt); unclear != "" {
			return nil, unclear
		}
	}
	if len(list) == 0 {
		return nil, "there is no command"
	}
	return list, ""
}

// appendPlain appends the commands of a statement to a plain list. unclear names the first element
// that a plain list cannot contain.
func appendPlain(list [][]string, stmt *syntax.Stmt) (_ [][]string, unclear string) {
	switch {
	case len(stmt.Redirs) > 0:
		return nil, "a redirection"
	case stmt.Negated:
		return nil, "a negation"
	case stmt.Background || stmt.Coprocess || stmt.Disown:
		return nil, "a command in the background"
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		argv, unclear := plainCall(cmd)
		return append(list, argv), unclear
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.PipeAll {
			return nil, "a redirection"
		}
		if list, unclear = appendPlain(list, cmd.X); unclear != "" {
			return nil, unclear
		}
		return appendPlain(list, cmd.Y)
	}
	return nil, "control flow, a subshell or another compound command"
}

// plainCall returns the words of a simple command made of literal words. For any other command, unclear names the
// first other element.
func plainCall(call *syntax.CallExpr) (argv []string, unclear string) {
	if len(call.Assigns) > 0 {
		return nil, "an assignment"
	}
	for _, arg := range call.Args {
		text, unclear := plainText(arg.Parts, false)
		if unclear != "" {
			return nil, unclear
		}
		argv = append(argv, text)
	}
	return argv, ""
}

// plainText returns the text of a word's literal parts, which may be inside double quotes. unclear names the first part
// that is not literal.
func plainText(parts []syntax.WordPart, inQuotes bool) (text, unclear string) {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			isCommand := p.Value == "[" // the test command, not a glob
			switch {
			case inQuotes && strings.Contains(p.Value, `\`):
				return "", "a quotation with escapes"
			case !inQuotes && !isCommand && strings.ContainsAny(p.Value, `\*?~{[`):
				return "", "an unquoted glob, brace, tilde or backslash"
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", "a quotation with escapes"
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar && len(p.Parts) > 0 {
				return "", "an expansion or a substitution"
			}
			text, unclear := plainText(p.Parts, true)
			if unclear != "" {
				return "", unclear
			}
			b.WriteString(text)
		default:
			return "", "an expansion or a substitution"
		}
	}
	return b.String(), ""
}
