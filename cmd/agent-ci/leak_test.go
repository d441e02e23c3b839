package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBinaryFilesHideNoSecret has changes whose patch does not show what they
// add: git packs a file with a NUL in it.
func TestBinaryFilesHideNoSecret(t *testing.T) {
	t.Parallel()
	token := "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
	wide := strings.Join(strings.Split(token+"\n", ""), `\000`) + `\000`
	for _, c := range []struct{ name, command, want string }{
		{"a NUL behind it", `printf 'key = ` + token + `\n\0' > key.bin`, "policy_violation/secret: The change holds a secret (GitHub token)"},
		{"a text in UTF-16", `printf '` + wide + `' > key.txt`, "policy_violation/secret: "},
		{"in a file that was binary", `printf '` + token + `' >> other.bin`, "policy_violation/secret: "},
		{"in the place of a text", `printf '` + token + `\0' > greet.sh`, "policy_violation/secret: "},
		{"it stood there before", `printf 'more\0' >> old.bin`, "changed/pull_request: "},
		{"no secret", `printf 'a\0b' > plain.bin`, "changed/pull_request: "},
		{"a binary file goes", `rm old.bin`, "changed/pull_request: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newPublishing(t)
			seed := filepath.Join(w.dir, "seed")
			for name, text := range map[string]string{"old.bin": "\x00" + token + "\n", "other.bin": "\x00other\n"} {
				if err := os.WriteFile(filepath.Join(seed, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w.git(seed, "add", "--all")
			w.git(seed, "commit", "--quiet", "--message=binaries")
			w.git(seed, "push", "--quiet", w.repo.Dir, "main")
			w.session("leak", c.command)
			if out := w.finish("leak"); !strings.HasPrefix(out, c.want) {
				t.Errorf("the run ended in %s, want %s", out, c.want)
			}
		})
	}
}
