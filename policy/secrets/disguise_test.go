package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/agent-ci/agent-ci/policy/must"
)

// wrap breaks text into lines of a width, and puts something around each.
func wrap(text string, width int, before, after string) string {
	var b strings.Builder
	for len(text) > width {
		b.WriteString(before + text[:width] + after + "\n")
		text = text[width:]
	}
	return b.String() + before + text + after + "\n"
}

func eachByte(format string) func(string) string {
	return func(text string) string {
		var b strings.Builder
		for i := range len(text) {
			fmt.Fprintf(&b, format, text[i])
		}
		return b.String()
	}
}

// tools are programs that print a file in another form. Which of them a machine
// has differs.
var tools = []string{
	"base64", "base64 -w 60", "base64 -w 64", "base64 -w 19", "base32", "basenc --base64url", "basenc --base16", "basenc --base16 -w 33",
	"xxd", "xxd -p", "xxd -i", "xxd -u -c 8", "xxd -g 1", "xxd -g 4", "xxd -p -c 10",
	"od", "od -An -tx1", "od -tx1", "od -An -v -tx1 -w7", "od -x", "od -b", "od -c", "od -An -tu1", "od -A x -t x1z", "od -t x1z",
	"hexdump", "hexdump -C", "hexdump -c", "hexdump -b", "fold -w 60", "fold -w 15", "fold -w 5", "fold -w 1", "cat -A", "cat -n", "sed -n l",
	"base64 -w 60 | cat -n", "base64 | sed s/^/file.b64:12:/", "base64 -w 40 | sed 's/^/+/'", "base64 | sed 's/^/> /'", "base64 | sed 's/^/    # /'",
	"base64 | sed 's/$/\\r/'", "base64 | sed 's/.*/\"&\",/'", "base64 | sed 's/.*/\"&\\\\n\" +/'", "xxd -p | cat -n", "xxd | sed 's/^/- /'", "od -An -tx1 | tr -d '\\n'",
	"xxd -p | tr '\\n' ' '", "base64 | tr '\\n' ' '",
}

func TestFindsEncodingsOfTools(t *testing.T) {
	random := randomTexts()
	values := []Value{
		{"OPENAI_API_KEY", "sk-proj-" + random(word+"-_", 156)},
		{"GITHUB_TOKEN", "ghs_" + random(word, 36)},
		{"PASSWORD", "x#9K$mQ2!vL@7pRz+w/4"},
	}
	r := NewRedactor(values)
	for _, tool := range tools {
		if _, err := exec.LookPath(strings.Fields(tool)[0]); err != nil {
			t.Logf("%s is not on this machine", tool)
			continue
		}
		for _, v := range values {
			for before := range 4 {
				if before > 0 && before < 3 && v != values[0] {
					continue
				}
				file := strings.Repeat("k", before) + v.Secret + "\n"
				if before == 3 {
					file = "the file of the key\nTOKEN=" + v.Secret + "\nand what else it holds, for some lines\n"
				}
				command := exec.Command("sh", "-c", tool)
				command.Stdin = strings.NewReader(file)
				printed, err := command.Output()
				must.Do(t, err, tool)
				looksRemoved(t, fmt.Sprintf("%s of %d bytes and %s", tool, before, v.Name), r, v, string(printed))
			}
		}
	}
}

// looksRemoved fails where a text keeps a value, or a gate would let it through.
func looksRemoved(t *testing.T, name string, r *Redactor, v Value, text string) {
	t.Helper()
	got := r.Redact("before\n" + text + "behind\n")
	must.Contain(t, got, "[secret "+v.Name+"]")
	if strings.Contains(got, "[part") || !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "behind\n") {
		t.Errorf("%s: of\n%sis left\n%s", name, text, got)
	}
	found, err := r.FindNew(strings.NewReader(text), nil)
	if err != nil || !slices.Contains(found, v.Name) {
		t.Errorf("%s: FindNew = %v, %v in\n%s", name, found, err, text)
	}
}

func TestFindsEncodedValues(t *testing.T) {
	b64, hexed := base64.StdEncoding.EncodeToString, hex.EncodeToString
	forms := map[string]func(string) string{
		"%XX":                eachByte("%%%02X"),
		"%xx":                eachByte("%%%02x"),
		`\xXX`:               eachByte(`\x%02x`),
		`\u00XX`:             eachByte(`\u%04x`),
		`\u00XX twice`:       eachByte(`\\u%04X`),
		`\u{XX}`:             eachByte(`\u{%x}`),
		"entities":           eachByte("&#%d;"),
		"hex entities":       eachByte("&#x%X;"),
		"octal escapes":      eachByte(`\%03o`),
		"list of numbers":    eachByte("%d, "),
		"C array":            eachByte("0x%02x,"),
		"list on lines":      eachByte("        %d,\n"),
		"colons":             eachByte("%02X:"),
		"wrapped %XX":        func(s string) string { return wrap(eachByte("%%%02x")(s), 75, "", "") },
		"wrapped hex in +":   func(s string) string { return wrap(hexed([]byte(s)), 61, "+", "") },
		"wrapped escapes":    func(s string) string { return wrap(eachByte(`\u%04x`)(s), 60, "  \"", "\" +") },
		"CRLF":               func(s string) string { return wrap(b64([]byte(s)), 76, "", "\r") },
		"quoted-printable":   func(s string) string { return wrap(strings.ReplaceAll(s, "=", "=3D"), 75, "", "=") },
		"JSON of lines":      func(s string) string { return asJSON(wrap(b64([]byte(s)), 76, "", "")) },
		"JSON in JSON":       func(s string) string { return asJSON(asJSON(wrap(b64([]byte(s)), 76, "L2: ", ""))) },
		"base64 in a URL":    func(s string) string { return url.QueryEscape(b64([]byte(s))) },
		"UTF-16":             inUTF16,
		"UTF-16 made valid":  func(s string) string { return strings.ReplaceAll(inUTF16(s), "\x00", "\uFFFD") },
		"URL":                url.QueryEscape,
		"path":               url.PathEscape,
		"URL in lower case":  func(s string) string { return lowerPercentEscapes(url.QueryEscape(s)) },
		"HTML":               html.EscapeString,
		"JSON with \\/":      func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
		"the shell's escape": func(s string) string { return strings.NewReplacer("/", `\/`, "&", `\&`, "<", `\<`).Replace(s) },
	}
	for _, v := range []Value{
		{"OPENAI_API_KEY", "sk-proj-" + randomTexts()(word+"-_", 156)},
		{"PASSWORD", "pa/ss&w<ord+of=7Kq2Z9"},
		{"SHORT", "q/8Zt4&Lm<0V"},
	} {
		r := NewRedactor([]Value{v})
		for name, form := range forms {
			if text := form(v.Secret); text != v.Secret {
				looksRemoved(t, name+" of "+v.Name, r, v, " "+text+"\n")
			}
		}
	}
}

func asJSON(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

func inUTF16(text string) string {
	var b bytes.Buffer
	for _, unit := range utf16.Encode([]rune(text)) {
		b.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return b.String()
}

func TestFindsValuesBrokenIntoLines(t *testing.T) {
	forms := map[string]func(string) string{
		"plain":  func(s string) string { return s },
		"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(`{"key": "` + s + `"}`)) },
		"hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
		"%XX":    eachByte("%%%02x"),
	}
	prefixes := []string{"", "+", "-", "> ", "  # ", " * ", "\t// "}
	numbered := []string{"L12: ", "     7\t", "path/to/file.b64:12:"} // from 16 characters on
	for name, form := range forms {
		for _, length := range []int{24, 40, 164} {
			v := Value{"KEY", randomTexts()(word+"-_", length)}
			r := NewRedactor([]Value{v})
			for _, width := range []int{1, 2, 7, 11, 16, 19, 40, 60, 64, 76, 99} {
				all := prefixes
				if width >= 16 {
					all = append(numbered, prefixes...)
				}
				for _, prefix := range all {
					text := wrap(form(v.Secret), width, prefix, "")
					if found, err := r.FindNew(strings.NewReader("x\n"+text+"y\n"), nil); len(found) != 1 || err != nil {
						t.Errorf("%s of %d characters in lines of %d behind %q is not found", name, length, width, prefix)
					}
				}
			}
		}
	}
}

func TestFindsValueAfterItsPart(t *testing.T) {
	v := Value{"KEY", randomTexts()(word, 80)}
	r := NewRedactor([]Value{v})
	for name, form := range map[string]func(string) string{"plain": func(s string) string { return s }, "hex": eachByte("%02x ")} {
		text := "1: " + form(v.Secret[20:60]) + "\n2: " + form(v.Secret[:50]) + "\n3: " + form(v.Secret[50:]) + "\n"
		if found, err := r.FindNew(strings.NewReader(text), nil); len(found) != 1 || err != nil {
			t.Errorf("%s: not found in %s", name, text)
		}
	}
}

func TestIgnoresSameLetters(t *testing.T) {
	r := NewRedactor([]Value{{"PASSWORD", "postgres-password"}, {"PHRASE", "correct horse battery staple"}, {"PIN", "12345678"}, {"DSN", "postgres://postgres:postgres@localhost:5432/postgres"}})
	for name, text := range map[string]string{
		"other punctuation": "postgres password, postgres/password, postgres_password and correct-horse-battery-staple",
		"a sentence":        "The postgres\npassword is asked for.",
		"columns":           "1234 5678\n1234\n5678\n",
		"a host":            "psql -h localhost -p 5432 -U postgres postgres; postgres: postgres@localhost",
		"other case":        "POSTGRES-PASSWORD",
		"a short piece":     hex.EncodeToString([]byte("postgres-pa")),
	} {
		must.Same(t, text, r.Redact(text), name)
	}
}
