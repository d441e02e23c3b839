package job

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// problemLines are the problems of layers as text.
func problemLines(t *testing.T, layers ...config.Layer) []string {
	t.Helper()
	_, err := Load(layers...)
	if err == nil {
		return nil
	}
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("the error is %T, want Problems", err)
	}
	return strings.Split(err.Error(), "\n")
}

// wantProblem makes sure that a job with these keys besides those of start has a problem that says this.
func wantProblem(t *testing.T, keys, says string) {
	t.Helper()
	must.Contain(t, strings.Join(problemLines(t, jobFile(start+keys+"\n")), "\n"), says)
}

func jobFile(yaml string) config.Layer { return config.Layer{Name: "job.yml", Data: []byte(yaml)} }

// start is a job without mistakes; what is tested comes below it, from line 3.
const start = "version: 1\ntask: {prompt: x}\n"

const fitsNone = "must be a pattern that a path can match: without ./, ../ and //, and not with / at its end; what is in a folder is folder/**"

func TestLocatesEachMistake(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		want       []string
	}{
		{"nothing wrong", start, nil},
		{"null is not set", start + "name: ~\nlimits:\nverify: null\nmodel: {name: , headers: {A: null}}\n", nil},

		{"unknown key with letters swapped", start + "limits: {tiem: 5m}", []string{"job.yml:3:10: limits.tiem: unknown key; did you mean limits.time?"}},
		{"key of another group than the one above it", start + "skills: {allow: [a]}", []string{"job.yml:3:10: skills.allow: unknown key"}},
		{"key of another group", start + "turns: 5", []string{"job.yml:3:1: turns: unknown key; did you mean limits.turns?"}},
		{"key like no other", start + "zebra: 5", []string{"job.yml:3:1: zebra: unknown key"}},
		{"unknown key in a list", start + "verify: [{run: x, mist: pass}]", []string{"job.yml:3:19: verify[0].mist: unknown key; did you mean verify[0].must?"}},
		{"header given twice", start + "model: {headers: {A: b, A: c}}", []string{"job.yml:3:25: model.headers.A: is given twice, the first time in line 3"}},
		{"key that is a list", start + "? [a]\n: b", []string{"job.yml:3:3: a key must be text"}},
		{"key that is null", start + "limits: {~: 1}", []string{"job.yml:3:10: limits: a key must be text"}},
		{"control character in a key", start + "\"a\\u001b[2Jb\": 1", []string{`job.yml:3:1: a\x1b[2Jb: unknown key`}},

		{"anchor", start + "name: &a b", []string{"job.yml:3:7: name: anchors and aliases are not allowed; write the value out"}},
		{"alias", start + "name: &a b\npull_request: {title: *a}", []string{
			"job.yml:3:7: name: anchors and aliases are not allowed; write the value out",
			"job.yml:4:23: pull_request.title: anchors and aliases are not allowed; write the value out",
		}},
		{"alias in its own anchor", start + "verify: &a [*a, {run: *a}]", []string{"job.yml:3:9: verify: anchors and aliases are not allowed; write the value out"}},
		{"tag", start + "name: !!str 5", []string{"job.yml:3:7: name: tags are not allowed; quote what is to be text"}},

		{"truth value for text", start + "name: true", []string{`job.yml:3:7: name: must be text, not true; did you mean "true"?`}},
		{"mapping for text", start + "name: {a: b}", []string{"job.yml:3:7: name: must be text, not a mapping"}},
		{"date for text", start + "repository: {base: 2024-01-01}", nil},
		{"text for number", start + "limits: {turns: many}", []string{"job.yml:3:17: limits.turns: must be a whole number, not text"}},
		{"grouped number", start + "limits: {tokens: 500_000}", []string{"job.yml:3:18: limits.tokens: must be a whole number in plain digits; did you mean 500000?"}},
		{"grouped number with a zero before", start + "limits: {tokens: 0_5}", []string{"job.yml:3:18: limits.tokens: must be a whole number in plain digits; did you mean 5?"}},
		{"fraction", start + "limits: {turns: 5.5}", []string{"job.yml:3:17: limits.turns: must be a whole number, not the number 5.5"}},
		{"what chat lacks", start + "model: {wire: chat, tools: freeform}\ntools: {hosted: [web_search]}", []string{
			"job.yml:3:28: model.tools: does not go with model.wire: chat; leave it out",
			"job.yml:4:17: tools.hosted: does not go with model.wire: chat; leave it out",
		}},
		{"quirks of another wire", start + "model: {chat: [alternate]}", []string{"job.yml:3:15: model.chat: needs model.wire: chat; set that, or remove it"}},
		{"a quirk that is none", start + "model: {wire: chat, chat: [alternates]}", []string{`job.yml:3:28: model.chat[0]: "alternates" is not one of ` + strings.Join(chatQuirks, ", ") + "; did you mean alternate?"}},
		{"calls of a model that only writes", start + "model: {tools: aider-diff}\ntools: {hosted: [web_search], js_repl: true}\nagents: {enabled: true}", []string{
			"job.yml:4:17: tools.hosted: does not go with model.tools: aider-diff, where the model writes edits and commands as text and can call nothing else; leave one of them out",
			"job.yml:4:40: tools.js_repl: does not go with model.tools: aider-diff, where the model writes edits and commands as text and can call nothing else; leave one of them out",
			"job.yml:5:19: agents.enabled: does not go with model.tools: aider-diff, where the model writes edits and commands as text and can call nothing else; leave one of them out",
		}},
		{"questions and tools of the job for a model that only writes", "version: 1\ntask: {prompt: x, questions: ask}\nmodel: {tools: aider-whole}\nmemory: {propose: change}\n" +
			"mcp_servers: {docs: {command: docs, tools: [search]}}\ntools: {dynamic: [{name: a, description: b, input_schema: {type: object}, run: [c]}]}", []string{
			"job.yml:2:30: task.questions: does not go with model.tools: aider-whole, where the model writes edits and commands as text and can call nothing else; leave one of them out",
			"job.yml:4:19: memory.propose: does not go with model.tools: aider-whole, where the model writes edits and commands as text and can call nothing else; leave one of them out",
			"job.yml:5:14: mcp_servers: does not go with model.tools: aider-whole, where the model writes edits and commands as text and can call nothing else; leave one of them out",
			"job.yml:6:18: tools.dynamic: does not go with model.tools: aider-whole, where the model writes edits and commands as text and can call nothing else; leave one of them out",
		}},
		{"quirks and JavaScript over chat", start + "model: {wire: chat, chat: [alternate]}\ntools: {js_repl: true}", nil},
		{"writing over chat", start + "model: {wire: chat, tools: aider-udiff}", nil},
		{"tools of OpenCode over chat", start + "model: {wire: chat, tools: opencode}", nil},
		{"a negative price", start + "model: {price: {input: -1}}", []string{"job.yml:3:24: model.price.input: must be 0 or more"}},
		{"hexadecimal", start + "limits: {turns: 0x10}", []string{"job.yml:3:17: limits.turns: must be a whole number, not the number 0x10"}},
		{"too large a number", start + "limits: {tokens: 99999999999999999999}", []string{"job.yml:3:18: limits.tokens: must be a whole number, not the number 99999999999999999999"}},
		{"negative", start + "limits: {diff_files: -1}", []string{"job.yml:3:22: limits.diff_files: must be 1 or more"}},
		{"off", start + "pull_request: {draft: Off}", []string{"job.yml:3:23: pull_request.draft: must be true or false, without quotes; did you mean false?"}},
		{"neither true nor false", start + "pull_request: {draft: maybe}", []string{"job.yml:3:23: pull_request.draft: must be true or false, not text"}},
		{"duration in days", start + "limits: {time: 2d}", []string{"job.yml:3:16: limits.time: must be a duration such as 90s, 10m or 1h30m; did you mean 48h?"}},
		{"no duration", start + "limits: {time: soon}", []string{"job.yml:3:16: limits.time: must be a duration such as 90s, 10m or 1h30m"}},
		{"duration of nothing", start + "setup: [{run: x, timeout: 0s}]", []string{"job.yml:3:27: setup[0].timeout: must be longer than 0s"}},
		{"empty text in a list", start + `tools: {deny: [""]}`, []string{"job.yml:3:16: tools.deny[0]: must not be empty"}},
		{"hosted tool with a screen", start + "tools: {hosted: [computer_use_preview]}", []string{"job.yml:3:18: tools.hosted[0]: computer_use_preview needs a screen, and a run has none; leave it out"}},
		{"hosted tool that runs here", start + "tools: {hosted: [{type: local_shell}]}", []string{"job.yml:3:18: tools.hosted[0]: local_shell is run by agent-ci and not by the API; model.tools says how such tools are offered"}},
		{"unknown hosted tool", start + "tools: {hosted: [web]}", []string{`job.yml:3:18: tools.hosted[0]: "web" is not one of web_search, web_search_preview, file_search, code_interpreter, mcp, image_generation`}},
		{"hosted tool without a type", start + "tools: {hosted: [{a: b}]}", []string{"job.yml:3:18: tools.hosted[0]: must be a type such as web_search, or a mapping with a type"}},
		{"number for hosted tool", start + "tools: {hosted: [5]}", []string{"job.yml:3:18: tools.hosted[0]: must be a type such as web_search, or a mapping with a type"}},
		{"search without a store", start + "tools: {hosted: [file_search]}", []string{"job.yml:3:18: tools.hosted[0]: file_search needs vector_store_ids, a list of the stores to search"}},
		{"server without a name", start + "tools: {hosted: [mcp]}", []string{"job.yml:3:18: tools.hosted[0]: mcp needs server_label, the name of the server"}},
		{"server without an address", start + "tools: {hosted: [{type: mcp, server_label: a}]}", []string{"job.yml:3:18: tools.hosted[0]: mcp needs server_url or connector_id"}},
		{"server in the clear", start + "tools: {hosted: [{type: mcp, server_label: a, server_url: 'http://mcp.example.com'}]}", []string{"job.yml:3:18: tools.hosted[0]: mcp has a server_url that is http, where others could read and change the traffic; write https. A server of this machine belongs in mcp_servers"}},
		{"server that asks", start + "tools: {hosted: [{type: mcp, server_label: a, server_url: b, require_approval: always}]}", []string{"job.yml:3:18: tools.hosted[0]: mcp must have require_approval: never, since nobody is there to approve; narrow allowed_tools instead"}},
		{"no number of JSON", start + "tools: {hosted: [{type: web_search, a: {b: [.nan]}}]}", []string{"job.yml:3:45: tools.hosted[0].a.b[0]: must be a finite number"}},
		{"anchor in a hosted tool", start + "tools: {hosted: [{type: web_search, a: &x 1}]}", []string{"job.yml:3:40: tools.hosted[0].a: anchors and aliases are not allowed; write the value out"}},
		{"key twice in a hosted tool", start + "tools: {hosted: [{type: web_search, type: mcp}]}", []string{"job.yml:3:37: tools.hosted[0].type: is given twice, the first time in line 3"}},
		{"text for mapping", start + "model: gpt-5", []string{"job.yml:3:8: model: must be a mapping such as {name: gpt-5.4}, not text"}},
		{"list in a mapping of text", start + "model: {headers: {a: [b]}}", []string{"job.yml:3:22: model.headers.a: must be text, not a list"}},

		{"unknown treatment", start + "policy: {change: {symlinks: drop}}", []string{`job.yml:3:29: policy.change.symlinks: "drop" is not one of fail, warn, allow`}},
		{"unknown kind of change", start + "policy: {change: {binary: fail}}", []string{`job.yml:3:19: policy.change.binary: unknown key`}},
		{"rules above the root", start + "policy: {rules: [../a.rules]}", []string{"job.yml:3:18: policy.rules[0]: must be the path of a file without .., below the repository's root or absolute"}},
		{"listed value in capitals", start + "verify: [{run: x, proves: True}]", []string{`job.yml:3:27: verify[0].proves: "True" is not one of false, true, required; did you mean true?`}},
		{"version as text", "version: \"1\"\ntask: {prompt: x}", []string{"job.yml:1:10: version: must be a whole number in plain digits; did you mean 1?"}},
		{"no version", "task: {prompt: x}", []string{"job.yml:1:1: version: is missing"}},
		{"no command", start + "verify: [{name: a}]", []string{"job.yml:3:10: verify[0].run: is missing"}},
		{"empty command", start + `setup: [{run: ""}]`, []string{"job.yml:3:15: setup[0].run: must not be empty"}},
		{"blank command", start + `setup: [{run: " "}]`, []string{"job.yml:3:15: setup[0].run: must not be blank"}},
		{"NUL in a command", start + `setup: [{run: "a\0b"}]`, []string{"job.yml:3:15: setup[0].run: must not contain a NUL character"}},

		{"branch that git refuses", start + "pull_request: {branch: a..b}", []string{"job.yml:3:24: pull_request.branch: must not contain .. or @{"}},
		{"folder in .git", start + "repository: {path: a/.GIT}", []string{"job.yml:3:20: repository.path: must not lead into .git"}},
		{"no issue", "version: 1\ntask: {issue: seven}", []string{"job.yml:2:15: task.issue: must be OWNER/REPO#N, #N, N or the issue's address (https://HOST/OWNER/REPO/issues/N), where N is its number"}},
		{"absolute prompt file", "version: 1\ntask: {prompt_file: /etc/passwd}", []string{"job.yml:2:21: task.prompt_file: must be a path relative to the job file, with slashes"}},
		{"address in the clear", start + "model: {base_url: 'http://api.example.com/v1'}", []string{"job.yml:3:19: model.base_url: is http to a public host, where others could read and change the traffic; write https. http is for localhost, private addresses, names without a dot, and names that end in .internal or .local"}},
		{"address without a host", start + "model: {base_url: api.example.com}", []string{"job.yml:3:19: model.base_url: must be an address such as https://api.example.com/v1"}},
		{"address with a query", start + "model: {base_url: 'https://api.example.com/v1?api-version=2025-04-01'}", nil},
		{"address with a key", start + "model: {base_url: 'https://api.example.com/v1?a=b&Api-Key=x'}", []string{"job.yml:3:19: model.base_url: must not have a key in its query (?…); the key belongs in the variable that api_key_env names"}},
		{"address with a signature", start + "model: {base_url: 'https://api.example.com/v1?a=b&sig=x'}", []string{"job.yml:3:19: model.base_url: must not have a key in its query (?…); the key belongs in the variable that api_key_env names"}},
		{"address with a broken query", start + "model: {base_url: 'https://api.example.com/v1?api-key=ab%zz'}", []string{"job.yml:3:19: model.base_url: must have a query such as ?name=value&other=value"}},
		{"key in the place of its variable", start + "model: {api_key_env: sk-verysecret}", []string{"job.yml:3:22: model.api_key_env: must be a variable's name: letters, digits and underscores"}},
		{"pattern from the root", start + "policy: {protect: [/etc]}", []string{"job.yml:3:20: policy.protect[0]: must be a pattern of paths below the repository's root, without / or ! in front"}},
		{"pattern with many braces", start + `policy: {protect: ["` + strings.Repeat("{a,b}", 40) + `"]}`, []string{"job.yml:3:20: policy.protect[0]: must be a pattern of paths: its braces stand for too many alternatives"}},
		{"pattern with half a brace", start + `policy: {protect: ["{a,b"]}`, []string{"job.yml:3:20: policy.protect[0]: must be a pattern of paths: a brace in it is not complete"}},
		{"patterns that fit no path", start + "policy: {protect: [infra/, ./a, a//b, ..]}", []string{
			"job.yml:3:20: policy.protect[0]: " + fitsNone, "job.yml:3:28: policy.protect[1]: " + fitsNone, "job.yml:3:33: policy.protect[2]: " + fitsNone, "job.yml:3:39: policy.protect[3]: " + fitsNone,
		}},
		{"pattern with half a bracket", start + `policy: {protect: ["a["]}`, []string{"job.yml:3:20: policy.protect[0]: must be a pattern of paths: a bracket or a backslash in it is not complete"}},
		{"unknown signature", start + `pull_request: {commit: {sign: gpg}}`, []string{`job.yml:3:31: pull_request.commit.sign: "gpg" is not one of "", github, ssh`}},
		{"signature without a key", start + `pull_request: {commit: {sign: ssh}}`, []string{"job.yml:3:31: pull_request.commit.sign: is ssh, and pull_request.commit.key_env names no variable with the key"}},
		{"login with @", start + `pull_request: {assignees: ["@octo"]}`, []string{"job.yml:3:28: pull_request.assignees[0]: must be a login, without @; did you mean octo?"}},
		{"label of two lines", start + `pull_request: {labels: ["a\nb"]}`, []string{"job.yml:3:25: pull_request.labels[0]: must be one line without control characters"}},
		{"title that is too long", start + "pull_request: {title: " + strings.Repeat("x", 257) + "}", []string{"job.yml:3:23: pull_request.title: must have at most 256 characters"}},

		{"issue that is a comment in a mapping", "version: 1\ntask: {issue: #7}\n", []string{`job.yml:2:15: is not YAML: # begins a comment here, which hides the rest of the line; put what begins with # in quotes; did you mean "#7"?`}},
		{"label that is a comment", start + "pull_request: {labels: [a, #b]}\n", []string{`job.yml:3:28: is not YAML: # begins a comment here, which hides the rest of the line; put what begins with # in quotes; did you mean "#b"?`}},
		{"variable beside set", start + "policy: {env: {FOO: bar}}", []string{"job.yml:3:16: policy.env.FOO: unknown key; did you mean policy.env.set.FOO?"}},
		{"variable of a server beside set", start + "mcp_servers: {a: {command: b, tools: [c], env: {foo: bar}}}", []string{"job.yml:3:49: mcp_servers.a.env.foo: unknown key; did you mean mcp_servers.a.env.set.foo?"}},
		{"no task", "version: 1", []string{"job.yml:1:1: task: is missing; give one of task.prompt, task.prompt_file and task.issue"}},
		{"blank task", "version: 1\ntask: {prompt: ' '}", []string{"job.yml:2:16: task.prompt: must not be blank"}},
		{"a prompt about an issue", "version: 1\ntask: {issue: 7, prompt: x}\npublish: {as: comment}", nil},
		{"two tasks", "version: 1\ntask: {issue: 7, prompt: x}", []string{"job.yml:2:15: task.issue: is a second task beside task.prompt; give only one of them"}},
		{"checks with one command", start + "verify: [{run: x}, {run: x}]", []string{"job.yml:3:20: verify[1].name: is also the name of verify[0]"}},
		{"the model's key passed", start + "policy: {env: {pass: [TEAM_KEY]}}\nmodel: {api_key_env: TEAM_KEY}", []string{"job.yml:3:23: policy.env.pass[0]: TEAM_KEY holds a credential, which commands never see"}},
		{"branch that is the base", start + "repository: {base: main}\npull_request: {branch: main}", []string{"job.yml:4:24: pull_request.branch: is the same branch as repository.base"}},

		{"empty file", "", []string{"job.yml:1:1: is empty; a job begins with version: 1"}},
		{"nothing but a comment", "# job\n", []string{"job.yml:1:1: is empty; a job begins with version: 1"}},
		{"no mapping", "- version: 1", []string{"job.yml:1:1: must be a mapping, not a list"}},
		{"second document", start + "---\nversion: 1\n", []string{"job.yml:3:1: holds a second document from here on; a job is one document"}},
		{"second document that is empty", start + "---\n", []string{"job.yml:3:1: holds a second document from here on; a job is one document"}},
		{"text after the document", start + "...\nfoo\n", []string{"job.yml:4:1: is not YAML: did not find expected <document start>"}},
		{"tab that indents", "version: 1\ntask:\n\tprompt: x\n", []string{"job.yml:3:1: is not YAML: a tab indents this line; use blanks"}},
		{"tab after blanks", "version: 1\ntask:\n  \tprompt: x\n", []string{"job.yml:3:3: is not YAML: a tab indents this line; use blanks"}},
		{"line that is out of step", "version: 1\nlimits:\n  turns: 5\n time: 5m\n", []string{"job.yml:4:2: is not YAML: the indentation of this line fits no line above"}},
		{"list that is not closed", "version: 1\ntools:\n  allow: [a, b\nlimits: {turns: 5}\n", []string{"job.yml:3:3: is not YAML: did not find expected ',' or ']'"}},
		{"quote that is not closed", "version: 1\nname: \"a\ntask: {prompt: x}\n", []string{"job.yml:2:7: is not YAML: this quote is not closed"}},
		{"colon in plain text", "version: 1\ntask: {prompt: x}\nname: a: b\n", []string{"job.yml:3:7: is not YAML: text with a colon and a blank has to be in quotes"}},
		{"alias of nothing", start + "name: *a\n", []string{"job.yml:3:1: is not YAML: unknown anchor 'a' referenced"}},
		{"syntax error in the first line", "{\n", []string{"job.yml:1:1: is not YAML: did not find expected node content"}},
		{"not UTF-8", start + "name: a\xffb\n", []string{"job.yml:3:8: is not UTF-8 from here on"}},
		{"UTF-16", "\xff\xfev\x00", []string{"job.yml:1:1: is not UTF-8 from here on"}},
		{"byte order mark", "\xef\xbb\xbf" + start + "zebra: 5", []string{"job.yml:3:1: zebra: unknown key"}},
		{"line ends of Windows", "version: 1\r\ntask: {prompt: x}\r\nlimits:\r\n  turn: 5\r\n", []string{"job.yml:4:3: limits.turn: unknown key; did you mean limits.turns?"}},
		{"line that is indented too far", "version: 1\ntask:\n  prompt: fix it\n   title: x\n", []string{"job.yml:4:4: is not YAML: the indentation of this line fits no line above"}},
		{"no blank behind a colon", "version:1\ntask: {prompt: x}\n", []string{"job.yml:2:1: is not YAML: the line above has no blank behind its colon"}},
		{"text that begins with @", start + "name: @x\n", []string{"job.yml:3:7: is not YAML: what begins with @, ` or % has to be in quotes"}},
		{"block that is not indented", "version: 1\ntask:\n  prompt: |\n  fix it\n", []string{"job.yml:4:3: is not YAML: text below | or > has to be indented more than its key"}},
		{"amounts that people write", start + "limits: {cost_usd: $5, tokens: 4e6, turns: '1,000', diff_lines: 5k}", []string{
			"job.yml:3:20: limits.cost_usd: must be a number in plain digits; did you mean 5?",
			"job.yml:3:32: limits.tokens: must be a whole number in plain digits; did you mean 4000000?",
			"job.yml:3:44: limits.turns: must be a whole number in plain digits; did you mean 1000?",
			"job.yml:3:65: limits.diff_lines: must be a whole number, not text",
		}},
		{"truth for a word", start + "policy: {network: true}", []string{`job.yml:3:19: policy.network: "true" is not one of none, loopback, full`}},
		{"control character", start + "name: a\x1bb\n", []string{"job.yml:3:8: holds the control character U+001B; write it as an escape in double quotes"}},
		{"too large", start + "#" + strings.Repeat("x", config.MaxSize), []string{"job.yml:1:1: is larger than 1024 KiB"}},
		{"too deep", start + "x: " + strings.Repeat("[", 20000), []string{"job.yml:3:1: is not YAML: exceeded max depth of 10000"}},
		{"columns are characters", start + "policy: {env: {set: {é: a, ü: b}}}", []string{
			"job.yml:3:22: policy.env.set.é: this name must be a variable's name: letters, digits and underscores",
			"job.yml:3:28: policy.env.set.ü: this name must be a variable's name: letters, digits and underscores",
		}},
	} {
		must.Same(t, c.want, problemLines(t, jobFile(c.yaml)), c.name)
	}
}

func TestReportsAllMistakesInOrder(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/bad.yml"))(t)
	got := problemLines(t, config.Layer{Name: "bad.yml", Data: data})
	golden.Compare(t, "testdata/bad.txt", strings.Join(got, "\n")+"\n")
}

func TestReportsMistakesOfLayersInOrder(t *testing.T) {
	set := config.SetLayer("limits.turn=5", "limits.time=10", "model.headers=[a")
	environment, _ := Format().Environment([]string{"AGENT_CI_VERIFY_ATTEMPTS=99"}, nil)
	got := problemLines(t,
		config.Layer{Name: "agent-ci.yml", Kind: config.DefaultsLayer, Data: []byte("version: 1\nname: x\ntask: {prompt: x}\n")},
		jobFile("version: 1\n\tx"), environment, set)
	want := []string{
		"agent-ci.yml:2:1: name: belongs in a job, not in a repository's defaults",
		"agent-ci.yml:3:1: task: belongs in a job, not in a repository's defaults",
		"job.yml:2:1: is not YAML: a tab indents this line; use blanks",
		"AGENT_CI_VERIFY_ATTEMPTS: verify_attempts: must be between 0 and 10",
		"--set: limits.turn: unknown key; did you mean limits.turns?",
		"--set: limits.time: must be a duration with its unit, not the number 10; did you mean 10m?",
		"--set: model.headers: the value is not YAML: did not find expected ',' or ']'",
	}
	must.Same(t, want, got, "problems")
}

func TestBoundsReportedMistakes(t *testing.T) {
	got := problemLines(t, jobFile(start+strings.Repeat("? [x]\n: y\n", 50_000)))
	must.Same(t, []string{"job.yml:203:3: more than 100 mistakes; the rest is not shown"}, got[min(config.MaxProblems, len(got)):], len(got), "lines, the last")
}
