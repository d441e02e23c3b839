package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// sequence is what is done in a run: operations on files by a command of the
// agent, and calls of tools. As text each is a line:
//
//	rename conf conf2
//	read_file conf2/cred.json
//	patch wrong-hunk conf2/cred.json taken
type sequence struct {
	tier   string
	beside bool // the operations go on and on while the tools are called; else all goes in turn
	steps  []string
}

// String is the sequence as a case is kept.
func (q sequence) String() string {
	order := "in turn"
	if q.beside {
		order = "beside"
	}
	return "tier " + q.tier + "\norder " + order + "\n" + strings.Join(q.steps, "\n") + "\n"
}

// readSequence reads what String made; lines that begin with # are remarks.
func readSequence(path string) (q sequence, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return q, err
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "", "#":
		case "tier":
			q.tier = rest
		case "order":
			q.beside = rest == "beside"
		default:
			q.steps = append(q.steps, line)
		}
	}
	if q.tier == "" || len(q.steps) == 0 {
		return q, errors.New(path + " has no tier or no steps")
	}
	return q, nil
}

// soakNames are those that steps take. What is hidden, protected or outside comes
// more than once, so that it is met more often; BASE is around the checkout.
var soakNames = strings.Fields(`
	conf conf conf conf2 conf2 docs docs/conf docs/more a a b c a/b
	conf/cred.json conf/cred.json conf/google.json conf/plain.txt conf2/cred.json conf2/google.json docs/conf/cred.json a/cred.json b/cred.json
	keys keys/id.txt keys/logo.png docs/keys/id.txt
	protected protected/keep.txt unprotected unprotected/keep.txt
	greet.sh four.png docs/readme.md docs/more/deep.md a/x b/x c/x conf/x
	.git .git/config .git/hooks .git/hooks/new .git/HEAD .gitignore a/.git a/.git/config .github/x
	.. ../denied/file BASE/denied/file BASE/home/.netrc BASE/home/.ssh/id_rsa BASE/outside BASE/outside/secret.txt BASE/outside/new BASE/temp/cred BASE/workspace/conf
	. / /proc/self/root /proc/self/cwd /dev/fd/3
`)

// stepKinds are the steps with what stands behind their first word: N for a name.
var stepKinds = strings.Split(`rename N N|rename N N|rename N N|exchange N N|exchange N N|link N N|symlink N N|symlink N N|mkdir N|remove N|fifo N|socket N|sparse N|write N text|copy N N`+
	`|chmod N 000|chmod N 755|chmod N 4755|chmod N 2755|chmod N 1777|times N|xattr N|deep N|mark N opaque|mark N redirect|mark N whiteout|whiteout N`+
	`|read_file N|read_file N|read_file N|list_dir N|grep_files N|grep_files N|view_image N|patch K N N|patch K N N|patch K N N|patch K N N`, "|")

// toolWords begin the steps that are calls of tools.
var toolWords = []string{"read_file", "list_dir", "grep_files", "view_image", "patch"}

func isCall(step string) bool {
	word, _, _ := strings.Cut(step, " ")
	return slices.Contains(toolWords, word)
}

// newSequence makes one up. The same seed makes the same.
func newSequence(seed uint64) sequence {
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(of []string) string { return of[random.IntN(len(of))] }
	q := sequence{tier: pick([]string{"full", "full", "namespaces", "landlock"}), beside: random.IntN(2) == 0}
	for range 20 + random.IntN(60) {
		words := strings.Fields(pick(stepKinds))
		for i, word := range words {
			switch word {
			case "N":
				words[i] = pick(soakNames)
			case "K":
				words[i] = strings.ReplaceAll(patchKinds[random.IntN(len(patchKinds))].name, " ", "-")
			}
		}
		q.steps = append(q.steps, strings.Join(words, " "))
	}
	return q
}

// turns are the calls of the model that do the sequence in a siege.
func (q sequence) turns(s *siege) [][]map[string]any {
	var turns [][]map[string]any
	if q.beside {
		var operations []string
		for _, step := range q.steps {
			if !isCall(step) {
				operations = append(operations, step)
			}
		}
		turns = append(turns, []map[string]any{s.disturb("forever", operations)})
	}
	var operations []string
	var calls []map[string]any
	for i, step := range append(q.steps, "") {
		switch {
		case isCall(step):
			if len(operations) > 0 {
				turns, operations = append(turns, []map[string]any{s.disturb("once", operations)}), nil
			}
			calls = append(calls, s.callOf(i, step))
			continue
		case len(calls) > 0:
			turns, calls = append(turns, calls), nil
		}
		if step != "" && !q.beside {
			operations = append(operations, step)
		}
	}
	if len(operations) > 0 {
		turns = append(turns, []map[string]any{s.disturb("once", operations)})
	}
	return turns
}

// disturb is the command that does operations, once or until it is ended.
func (s *siege) disturb(how string, operations []string) map[string]any {
	text := "intruder disturb " + how
	for _, operation := range operations {
		text += " '" + strings.ReplaceAll(operation, "BASE", s.dir) + "'"
	}
	yield := 30000
	if how == "forever" {
		yield = 250
	}
	return call("disturb "+how, "exec_command", map[string]any{"cmd": text, "yield_time_ms": yield})
}

// callOf is the call that a step stands for.
func (s *siege) callOf(i int, step string) map[string]any {
	words := strings.Fields(strings.ReplaceAll(step, "BASE", s.dir))
	switch words[0] {
	case "read_file":
		return call(step, words[0], map[string]any{"file_path": words[1]})
	case "list_dir":
		return call(step, words[0], map[string]any{"dir_path": words[1], "depth": 5, "limit": 1000})
	case "grep_files":
		return call(step, words[0], map[string]any{"pattern": "plain|canary-o[f]|the-secret-o[f]", "path": words[1]})
	case "view_image":
		return call(step, words[0], map[string]any{"path": words[1]})
	}
	for _, kind := range patchKinds {
		if strings.ReplaceAll(kind.name, " ", "-") == words[1] {
			body := strings.NewReplacer("WAY", words[2], "FREE", words[3]).Replace(kind.body)
			return patchCall(step, i, "*** Begin Patch\n"+body+"*** End Patch\n")
		}
	}
	panic(fmt.Sprintf("there is no step %q", step))
}
