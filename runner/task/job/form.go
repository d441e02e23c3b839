package job

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// form is what a text may be. Its complaints never repeat the text, which may
// be a key that somebody wrote in the wrong place.
type form struct {
	about   string // "OWNER/REPO", for documentation
	check   func(string) error
	pattern string // as much of check as a JSON Schema can say; may be empty
	prefix  string // that people put before it by mistake
}

// without is f for texts that people wrongly begin with prefix.
func (f *form) without(prefix string) *form {
	f.prefix = prefix
	return f
}

// meant is s without the prefix, when that is what makes it wrong.
func (f *form) meant(s string) string {
	if rest, cut := strings.CutPrefix(s, f.prefix); cut && f.prefix != "" && f.check(rest) == nil {
		return rest
	}
	return ""
}

// matching is the form of texts that match pattern as a whole.
func matching(about, pattern string) *form {
	fits := sync.OnceValue(func() *regexp.Regexp { return whole(pattern) })
	return &form{about: about, pattern: pattern, check: func(s string) error {
		if !fits().MatchString(s) {
			return errors.New("must be " + about)
		}
		return nil
	}}
}

var (
	notBlank       = &form{about: "text", check: checkNotBlank}
	oneLine        = &form{about: "one line", check: checkLine}
	filledLine     = &form{about: "one line", check: checkFilledLine}
	title          = &form{about: "one line of at most 256 characters", check: atMost(256)}
	label          = &form{about: "one line of at most 50 characters", check: atMost(50)}
	refPart        = &form{about: "part of a branch name, without a slash", check: ValidateKey}
	branchForm     = &form{about: "branch name", check: ValidateBranch}
	repositoryForm = &form{about: "OWNER/REPO", check: ValidateRepository, pattern: repositoryPattern}
	issueForm      = &form{about: "OWNER/REPO#N, #N, N or the issue's address", check: readableBy(ParseIssue), pattern: `(?:(?:` + repositoryPattern + `)?#)?[1-9][0-9]*|` + issueAddress}
	relativeFile   = &form{about: "relative path", check: checkRelativeFile}
	absoluteFile   = &form{about: "absolute path", check: checkAbsoluteFile, pattern: `/.*`}
	imageForm      = &form{about: "relative path, or https address", check: checkImage}
	folder         = &form{about: "path below the root, without ..", check: checkFolder}
	skillFolder    = &form{about: "path of a folder below the root, without ..", check: checkSkillFolder}
	pathPattern    = &form{about: "pattern of paths, with *, ** and ?", check: checkPattern}
	protectPattern = &form{about: "pattern of paths, with *, ** and ?, or ! and a pattern that is protected by default", check: checkProtect}
	rulesFile      = &form{about: "path of a file", check: checkRulesFile, pattern: `/?` + pathPart + `(?:/` + pathPart + `)*`}
	webAddress     = &form{about: "http or https address", check: checkAddress("https://api.example.com/v1", "the key belongs in the variable that api_key_env names", false), pattern: `https?://.+`}
	headerValue    = &form{about: "one line", check: checkHeaderValue}
	variableValue  = &form{about: "text", check: checkNoNUL}

	commandWord = matching("a word that begins with /", `(?:/[A-Za-z0-9_-]{1,50})?`)
	variable    = matching("a variable's name: letters, digits and underscores", `[A-Za-z_][A-Za-z0-9_]*`)
	headerName  = matching("a header's name", "[A-Za-z0-9!#$%&'*+.^_`|~-]+")
	toolName    = matching("a tool's name", `[A-Za-z0-9_.-]{1,64}`)
	login       = matching("a login, without @", ownerPattern+`(?:\[bot\])?`).without("@")
	role        = matching("a role: read, triage, write, maintain or admin", `read|triage|write|maintain|admin`)
	reviewer    = matching("a login, or a team as ORGANISATION/TEAM, without @", ownerPattern+`(?:\[bot\]|/[A-Za-z0-9._-]{1,100})?`).without("@")
)

// pathPart is a part of a path other than . and .., for which a JSON Schema has no other
// way: one that begins with no dot, with one, or with two.
const (
	inPath   = `[^/\\\x00-\x1f\x7f-\x9f]`
	pathPart = `(?:[^/.\\\x00-\x1f\x7f-\x9f]` + inPath + `*|\.[^/.\\\x00-\x1f\x7f-\x9f]` + inPath + `*|\.\.` + inPath + `+)`
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

func atMost(characters int) func(string) error {
	return func(s string) error {
		if utf8.RuneCountInString(s) > characters {
			return fmt.Errorf("must have at most %d characters", characters)
		}
		return checkFilledLine(s)
	}
}

func readableBy[T any](parse func(string) (T, error)) func(string) error {
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

func checkAbsoluteFile(s string) error {
	if !path.IsAbs(s) {
		return errors.New("must be an absolute path")
	}
	return checkFilledLine(s)
}

func checkImage(s string) error {
	if strings.HasPrefix(s, "https://") {
		return checkFilledLine(s)
	}
	return checkRelativeFile(s)
}

func checkRulesFile(s string) error {
	if below := strings.TrimPrefix(s, "/"); !fs.ValidPath(below) || below == "." || strings.Contains(s, `\`) {
		return errors.New("must be the path of a file without .., below the repository's root or absolute")
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

// checkSkillFolder takes no root: with all that is there nothing could be changed.
func checkSkillFolder(s string) error {
	if s == "." {
		return errors.New("must be a folder below the repository's root, such as tools/skills")
	}
	return checkFolder(s)
}

// checkProtect checks an entry of policy.protect.
func checkProtect(s string) error { return checkPattern(strings.TrimPrefix(s, opens)) }

func checkPattern(s string) error {
	if _, err := path.Match(s, ""); err != nil {
		return errors.New("must be a pattern of paths: a bracket or a backslash in it is not complete")
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "!") {
		return errors.New("must be a pattern of paths below the repository's root, without / or ! in front")
	}
	if !doublestar.ValidatePattern(s) {
		return errors.New("must be a pattern of paths: a brace in it is not complete")
	}
	if s != "" && path.Clean(s) != s || s == "." || s == ".." {
		return errors.New("must be a pattern that a path can fit: without ./, ../ and //, and not with / at its end; what is in a folder is folder/**")
	}
	return checkFilledLine(s)
}

// checkAddress checks an http or https address. secret says where a password belongs.
func checkAddress(example, secret string, query bool) func(string) error {
	return func(s string) error {
		address, err := url.Parse(s)
		switch {
		case err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http":
			return errors.New("must be an address such as " + example)
		case address.User != nil:
			return errors.New("must not have a user or a password; " + secret)
		case address.Fragment != "":
			return errors.New("must not have a fragment (#…)")
		case address.RawQuery != "" && !query:
			return errors.New("must not have a query (?…)")
		}
		return checkInTheClear(address)
	}
}

// checkInTheClear refuses http to a public host, since others could read and change what is said.
func checkInTheClear(address *url.URL) error {
	if address.Scheme == "http" && !reach.Near(address.Hostname()) {
		return errors.New("is http to a public host, where others could read and change the traffic; write https. http is for localhost, private addresses, names without a dot, and names that end in .internal or .local")
	}
	return nil
}

// checkHeaderValue refuses what would end the header: RFC 9110, section 5.5.
func checkHeaderValue(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
		return errors.New("must be one line without control characters")
	}
	return nil
}
