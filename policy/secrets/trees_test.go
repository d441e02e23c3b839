package secrets

import (
	"crypto/ed25519"
	crand "crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// ordinaryValues are secrets as runs know them, random ones and such as people
// choose. None of them stands in a tree of sources.
func ordinaryValues(b *testing.B) []Value {
	random := randomTexts()
	jwt := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT","kid":"38826b17-6a30-5f9b-b169-8beb8202f723"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://token.actions.githubusercontent.com","scp":"Actions.Results:ce7f54c7-61c7-4aae-887f-30da475f5f1a"}`)) + "." +
		random(word+"-_", 342)
	all := []string{
		"sk-proj-" + random(word+"-_", 156), "ghs_" + random(word, 36), "github_pat_" + random(word, 22) + "_" + random(word, 59), jwt,
		random(hexAlphabet, 40), random(word+"+/", 40), "0b1e6c1e-7c1d-4f7e-9a53-6fd1c2b9a8e4", "Bearer " + random(word, 32), "Basic dXNlcjpwYXNzd29yZDEyMw==",
		"postgres://postgres:postgres@localhost:5432/postgres?sslmode=disable", "https://user:hunter2hunter2@registry.internal.example.com:8443/v2/",
		"postgres-password", "correct horse battery staple", "Summer2024!!", "opensesame7", random(word+"#$%&!?*+", 20), random(digits, 16),
		privatePEM(b, "PRIVATE KEY"), privatePEM(b, "RSA PRIVATE KEY"), privatePEM(b, "ed25519"),
	}
	values := make([]Value, 0, len(all))
	for i, secret := range all {
		values = append(values, Value{fmt.Sprintf("VALUE_%d", i), secret})
	}
	return values
}

const word = digits + upper + lower

// randomTexts makes texts of an alphabet and a length, the same in each run.
func randomTexts() func(alphabet string, length int) string {
	source := rand.New(rand.NewPCG(1, 2))
	return func(alphabet string, length int) string {
		text := make([]byte, length)
		for i := range text {
			text[i] = alphabet[source.IntN(len(alphabet))]
		}
		return string(text)
	}
}

func privatePEM(b *testing.B, kind string) string {
	b.Helper()
	var raw []byte
	var err error
	switch kind {
	case "ed25519":
		_, key, _ := ed25519.GenerateKey(crand.Reader)
		kind = "PRIVATE KEY"
		raw, err = x509.MarshalPKCS8PrivateKey(key)
	default:
		var key *rsa.PrivateKey
		if key, err = rsa.GenerateKey(crand.Reader, 2048); err != nil {
			b.Fatal(err)
		}
		if raw = x509.MarshalPKCS1PrivateKey(key); kind == "PRIVATE KEY" {
			raw, err = x509.MarshalPKCS8PrivateKey(key)
		}
	}
	must.Do(b, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}

// trees are sources that nobody's secrets stand in.
func trees() map[string]string {
	all := map[string]string{}
	for language, command := range map[string][]string{
		"Go": {"go", "env", "GOROOT"}, "Python": {"python3", "-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])"},
	} {
		out, err := exec.Command(command[0], command[1:]...).Output()
		if all[language] = strings.TrimSpace(string(out)); err != nil {
			all[language] = ""
		}
	}
	if all["Go"] != "" {
		all["Go"] = filepath.Join(all["Go"], "src")
	}
	return all
}

// BenchmarkFalseFinds looks for values in trees that don't hold them. What is
// found is false; so is nothing of what has a token's shape, which is counted
// apart.
func BenchmarkFalseFinds(b *testing.B) {
	values := ordinaryValues(b)
	known, shapes := NewRedactor(values), NewRedactor(nil)
	for language, tree := range trees() {
		b.Run(language, func(b *testing.B) {
			if tree == "" {
				b.Skipf("the sources of %s are not on this machine", language)
			}
			var bytes, finds, shaped int
			for b.Loop() {
				bytes, finds, shaped = 0, 0, 0
				readTree(b, tree, func(name, text string) {
					bytes += len(text)
					shaped += added(text, shapes.Redact(text), "[secret ")
					got := known.Redact(text)
					for _, v := range values {
						if n := added(text, got, "secret "+v.Name+"]"); n > 0 {
							finds += n
							b.Logf("%s: %d × %s", name, n, v.Name)
						}
					}
				})
			}
			b.SetBytes(int64(bytes))
			b.ReportMetric(float64(finds), "false-finds")
			b.ReportMetric(float64(shaped), "shapes")
			b.ReportMetric(float64(bytes)/1e6, "MB")
		})
	}
}

func added(before, after, mark string) int {
	return strings.Count(after, mark) - strings.Count(before, mark)
}

// readTree gives each file below a folder.
func readTree(b *testing.B, tree string, take func(name, text string)) {
	err := filepath.WalkDir(tree, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.Contains(name, "site-packages") {
			return err
		}
		text, err := os.ReadFile(name)
		take(name, string(text))
		return err
	})
	must.Do(b, err)
}

// BenchmarkLong is what 30 MB of a stranger's text cost.
func BenchmarkLong(b *testing.B) {
	r := NewRedactor(ordinaryValues(b))
	key := ordinaryValues(b)[0].Secret
	for name, line := range map[string]string{
		"text":      "ok  \tgithub.com/example/project/package\t0.123s coverage: 81.2% of statements\n",
		"dump":      "00000010: 6f6b 2020 0967 6974 6875 622e 636f 6d2f  ok  .github.com/\n",
		"base64":    base64.StdEncoding.EncodeToString([]byte(body(wordAlphabet, 57))) + "\n",
		"blanks":    strings.Repeat(" ", 400) + "a\n",
		"prefixes":  "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\n",
		"fragments": key[20:40] + "\n",
	} {
		text := strings.Repeat(line, 30_000_000/len(line))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Redact(text)
			}
		})
	}
}
