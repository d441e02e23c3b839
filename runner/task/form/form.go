package form

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Form checks the syntax of a text. Its error messages never repeat the text: it may be a key in
// the wrong place.
type Form struct {
	Check          func(string) error
	Pattern        string // the part of Check expressible in JSON Schema; may be empty
	mistakenPrefix string // that people put before it by mistake
}

// WithMistakenPrefix sets a prefix that people often add by mistake, and returns f.
func (f *Form) WithMistakenPrefix(prefix string) *Form {
	f.mistakenPrefix = prefix
	return f
}

// Suggest returns s without the prefix if that makes it valid, else "".
func (f *Form) Suggest(s string) string {
	if rest, cut := strings.CutPrefix(s, f.mistakenPrefix); cut && f.mistakenPrefix != "" && f.Check(rest) == nil {
		return rest
	}
	return ""
}

// Matching returns a form for texts that match the whole pattern.
func Matching(about, pattern string) *Form {
	expression := sync.OnceValue(func() *regexp.Regexp { return CompileFullMatch(pattern) })
	return &Form{Pattern: pattern, Check: func(s string) error {
		if !expression().MatchString(s) {
			return errors.New("must be " + about)
		}
		return nil
	}}
}

// The forms shared by several keys.
var (
	FilledLine    = &Form{Check: checkFilledLine}
	NotBlank      = &Form{Check: checkNotBlank}
	OneLine       = &Form{Check: checkLine}
	Label         = &Form{Check: LineLengthCheck(50)}
	Branch        = &Form{Check: ValidateBranch}
	IssueRef      = &Form{Check: ParserCheck(ParseIssue), Pattern: `(?:(?:` + RepositoryPattern + `)?#)?[1-9][0-9]*|` + issueAddress}
	RelativeFile  = &Form{Check: checkRelativeFile}
	Folder        = &Form{Check: checkFolder}
	VariableValue = &Form{Check: checkNoNUL}

	Repository = Matching("OWNER/REPO", RepositoryPattern)
	Variable   = Matching("a variable's name: letters, digits and underscores", `[A-Za-z_][A-Za-z0-9_]*`)
	Login      = Matching("a login, without @", OwnerPattern+`(?:\[bot\])?`).WithMistakenPrefix("@")
)

func checkNoNUL(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("must not contain a NUL character")
	}
	return nil
}

func checkNotBlank(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("must not be blank")
	}
	return checkNoNUL(s)
}

func checkLine(s string) error {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return errors.New("must be one line without control characters")
	}
	return nil
}

func checkFilledLine(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("must not be blank")
	}
	return checkLine(s)
}

// LineLengthCheck returns a function that requires one non-blank line of up to that number of characters.
func LineLengthCheck(characters int) func(string) error {
	return func(s string) error {
		if utf8.RuneCountInString(s) > characters {
			return fmt.Errorf("must have at most %d characters", characters)
		}
		return checkFilledLine(s)
	}
}

// ParserCheck returns a function that accepts the texts that parse accepts.
func ParserCheck[T any](parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		_, err := parse(s)
		return err
	}
}

func checkRelativeFile(s string) error {
	if strings.HasPrefix(s, "/") || strings.Contains(s, `\`) {
		return errors.New("must be a path relative to the job file, with slashes")
	}
	return checkFilledLine(s)
}

func checkFolder(s string) error {
	if !fs.ValidPath(s) || strings.Contains(s, `\`) {
		return errors.New("must be a path below the repository's root, such as services/api, without .. and without a slash at either end")
	}
	for part := range strings.SplitSeq(s, "/") {
		if strings.EqualFold(part, ".git") {
			return errors.New("must not lead into .git")
		}
	}
	return checkLine(s)
}
