package form

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// ValidateBranch returns an error for a branch name that git or GitHub rejects. The rules are those
// of git check-ref-format.
func ValidateBranch(name string) error {
	const longest = 200 // leaves room for refs/heads/ and .lock in a file name of 255 bytes
	switch {
	case name == "" || len(name) > longest:
		return fmt.Errorf("must have 1 to %d bytes", longest)
	case strings.HasPrefix(name, "-"):
		return errors.New("must not begin with -")
	case name == "HEAD" || name == "@" || strings.HasPrefix(name, "refs/"):
		return errors.New("must be a branch's short name")
	case CompileFullMatch(`[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?`).MatchString(name): // GitHub rejects names that look like a SHA-1 or SHA-256
		return errors.New("must not look like a commit's SHA")
	case strings.Contains(name, "..") || strings.Contains(name, "@{"):
		return errors.New("must not contain .. or @{")
	case strings.HasSuffix(name, "."):
		return errors.New("must not end with a dot")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, isForbiddenInRef):
		return errors.New(`must not contain blanks, control characters or any of ~^:?*[\`)
	}
	for component := range strings.SplitSeq(name, "/") {
		if component == "" || component[0] == '.' || strings.HasSuffix(component, ".lock") {
			return errors.New("must not have a part between slashes that is empty, begins with a dot or ends with .lock")
		}
	}
	return nil
}

func isForbiddenInRef(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r)
}

// ValidateKey returns an error for an invalid task key. A key is one part of a branch name, of up
// to 100 bytes, and can also name files.
func ValidateKey(name string) error {
	const longest = 100
	if len(name) > longest {
		return fmt.Errorf("must have at most %d bytes", longest)
	}
	if strings.Contains(name, "/") {
		return errors.New("must not contain a slash")
	}
	return ValidateBranch(name)
}

const (
	OwnerPattern      = `[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})`
	RepositoryPattern = OwnerPattern + `/(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}|\.[A-Za-z0-9_-][A-Za-z0-9._-]{0,98}|\.\.[A-Za-z0-9._-]{1,98})` // not . and ..
)

// ValidateRepository returns an error for a name that is not OWNER/REPO.
func ValidateRepository(name string) error { return Repository.Check(name) }

type Issue struct {
	Repository string // OWNER/REPO; empty for the repository of the run
	Number     int
}

// issueAddress matches the web address of an issue or pull request. Its groups are the server, OWNER/REPO
// and the number. The server needs no https:// if its name has a dot, because browsers show addresses that
// way. Anything after the number is ignored.
const issueAddress = `(https?://[^/?#@\s]+|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::\d{1,5})?)/(` + RepositoryPattern + `)/(?:issues|pull)/([1-9][0-9]*)(?:[/?#]\S*)?`

var issueAddressPattern = sync.OnceValue(func() *regexp.Regexp { return CompileFullMatch(issueAddress) })

// matchIssueAddress returns the groups of issueAddress, or nil. Most runs have no address, and compiling the
// expression takes time. An address has at least four slashes.
func matchIssueAddress(s string) []string {
	if strings.Count(s, "/") < 4 {
		return nil
	}
	return issueAddressPattern().FindStringSubmatch(s)
}

// ParseIssue reads OWNER/REPO#N, #N, N or the address of the issue's page.
func ParseIssue(s string) (Issue, error) {
	if address := matchIssueAddress(s); address != nil {
		s = address[2] + "#" + address[3]
	}
	repository, digits, marked := strings.Cut(s, "#")
	if !marked {
		repository, digits = "", s
	}
	number, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || number < 1 || strconv.FormatInt(number, 10) != digits {
		return Issue{}, errors.New("must be OWNER/REPO#N, #N, N or the issue's address (https://HOST/OWNER/REPO/issues/N), where N is its number")
	}
	if repository != "" {
		if err := ValidateRepository(repository); err != nil {
			return Issue{}, fmt.Errorf("%w before the #", err)
		}
	}
	return Issue{Repository: repository, Number: int(number)}, nil
}

// IssueServer returns the server in the web address of an issue, such as https://github.com. It returns ""
// for #7 and OWNER/REPO#7.
func IssueServer(s string) string {
	if address := matchIssueAddress(s); address != nil {
		if strings.Contains(address[1], "://") {
			return address[1]
		}
		return "https://" + address[1]
	}
	return ""
}

// String returns the issue in a form that ParseIssue reads.
func (i Issue) String() string { return fmt.Sprintf("%s#%d", i.Repository, i.Number) }

// CompileFullMatch compiles a regular expression that must match the whole text.
func CompileFullMatch(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`\A(?:` + pattern + `)\z`)
}
