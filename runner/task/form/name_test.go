package form

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

var branchNames = []string{
	"main", "agent-ci/fix-lint", "a/b/c", "release/1.10", "ünï/日本", "a@b", "a{b", "a.b", "-", "a-", "a'b\"c;$(x)",
	"", "/a", "a/", "a//b", ".a", "a/.b", "a.", "a..b", "a.lock", "a.lock/b", "a b", "a\tb", "a\nb", "a\x7fb", "a~b", "a^b", "a:b", "a?b",
	"a*b", "a[b", `a\b`, "a@{b", "-a",
}

// TestValidateBranchAgreesWithGit compares with git itself, which alone decides.
func TestValidateBranchAgreesWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here to compare with")
	}
	for _, name := range branchNames {
		t.Run(name, func(t *testing.T) {
			accepted := exec.CommandContext(t.Context(), "git", "check-ref-format", "--branch", name).Run() == nil
			err := ValidateBranch(name)
			must.Same(t, accepted, err == nil, "it is valid, which git decides", err)
		})
	}
}

// TestValidateBranchIsStricterThanGit has names that GitHub refuses, or that mean something else to a command that
// takes a revision.
func TestValidateBranchIsStricterThanGit(t *testing.T) {
	for _, name := range []string{
		"HEAD", "@", "refs/heads/main", strings.Repeat("a", 201), strings.Repeat("0a", 20), strings.Repeat("F", 64), "a\xffb",
	} {
		must.Fail(t, "", ValidateBranch(name), name, "is accepted")
	}
}

func TestValidatesTaskKeys(t *testing.T) {
	for name, want := range map[string]bool{
		"fix-lint": true, "issue-7": true, strings.Repeat("a", 100): true,
		"": false, "a/b": false, "..": false, ".": false, "-a": false, strings.Repeat("a", 101): false,
	} {
		must.Same(t, want, ValidateKey(name) == nil, name)
	}
}

func TestValidatesRepositoryNames(t *testing.T) {
	for name, want := range map[string]bool{
		"octo/demo": true, "octo-org/hello.world": true, "o_emu/r-1": true, "O9/-r": true, "o/_r": true, strings.Repeat("o", 39) + "/r": true, "octo/.github": true, "octo/..a": true, "octo/" + strings.Repeat("r", 100): true,
		"": false, "demo": false, "octo/": false, "/demo": false, "octo/demo/x": false, "octo/..": false, "octo/.": false,
		"-octo/demo": false, "_octo/demo": false, "octo.x/demo": false, "öcto/demo": false, "octo/dém": false, "octo/\xff": false, "octo/de mo": false, "octo/demo\n": false, strings.Repeat("o", 40) + "/demo": false, "octo/" + strings.Repeat("r", 101): false,
	} {
		must.Same(t, want, ValidateRepository(name) == nil, name)
	}
}

func TestParseIssue(t *testing.T) {
	for text, want := range map[string]Issue{
		"7": {Number: 7}, "#7": {Number: 7}, "octo/demo#12": {"octo/demo", 12}, "2147483647": {Number: 2147483647},
		"https://github.com/octo/demo/issues/7": {"octo/demo", 7}, "https://github.com/octo/demo/issues/7#issuecomment-12": {"octo/demo", 7},
		"https://github.com/octo/demo/issues/7/": {"octo/demo", 7}, "http://ghes.example:8080/octo/de.mo/issues/7?x=y": {"octo/de.mo", 7},
		"https://github.com/octo/demo/pull/9/files": {"octo/demo", 9},
		"github.com/octo/demo/issues/7":             {"octo/demo", 7}, "ghes.example:8080/octo/demo/pull/9#x": {"octo/demo", 9},
	} {
		got, err := ParseIssue(text)
		must.Do(t, err, text)
		must.Same(t, want, got, text)
		if again, err := ParseIssue(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which reads as %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{
		"", "#", "0", "-7", "+7", "07", "7 ", "2147483648", "octo#7", "octo/demo", "octo/demo#", "octo/..#7", "octo/.#7", "octo/demo#7#8", "https://github.com/octo/demo", "https://github.com/octo/demo/issues",
		"https://github.com/octo/demo/issues/07", "https://github.com/octo/demo/issues/7x", "https://github.com/octo/issues/7", "https://github.com/octo/../issues/7",
		"https://user@github.com/octo/demo/issues/7", "ftp://github.com/octo/demo/issues/7", "https://github.com/octo/demo/issues/7 8",
		"github/octo/demo/issues/7", "user@github.com/octo/demo/issues/7", "//github.com/octo/demo/issues/7", "github.com/octo/issues/7", "../octo/demo/issues/7",
	} {
		must.Fail(t, "", must.Err(ParseIssue(text)), text, "reads as")
	}
	for text, want := range map[string]string{"octo/demo#7": "", "github.com/octo/demo/issues/7": "https://github.com", "https://github.com/octo/demo/issues/7#x": "https://github.com", "http://ghes.example:8080/octo/demo/issues/7": "http://ghes.example:8080"} {
		must.Same(t, want, IssueServer(text), text)
	}
}
