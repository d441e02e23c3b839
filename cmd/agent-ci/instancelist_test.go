package main_test

// own is a project that is written here.
func own(files tree) func(*workshop) tree { return func(*workshop) tree { return files } }

const goWorks = "go version"

// instances are bugs of published modules, and of projects in the shapes of others.
var instances = map[string]instance{
	// The fix alters what a test of the base expects.
	"semver": {
		needs: goWorks, base: goModule("github.com/Masterminds/semver/v3@v3.2.0"), fix: goModule("github.com/Masterminds/semver/v3@v3.2.1"),
		fixed: tree{"constraints.go": ""}, tests: tree{"constraints_test.go": ""},
		wrong: tree{"more.go": "package semver\n\nconst more = true\n"}, idle: tree{"idle_test.go": goIdle("semver")},
		check: "go test -v .",
		expect: map[string]string{
			"right fix":    "changed/committed green→green; constraints_test.go proven by TestConstraintsCheck, TestRewriteRange; was TestRewriteRange",
			"tests alone":  "verify_failed/red green→red; fails github.com/Masterminds/semver/v3.TestConstraintsCheck; fails github.com/Masterminds/semver/v3.TestRewriteRange",
			"trivial test": "verify_failed/red green→red; fails github.com/Masterminds/semver/v3.TestRewriteRange",
			"nothing":      "no_changes/nothing_to_do green→",
			"wrong fix":    "verify_failed/red green→red; fails github.com/Masterminds/semver/v3.TestConstraintsCheck; fails github.com/Masterminds/semver/v3.TestRewriteRange",
		},
	},
	// The tests use what only the fix brings.
	"mux": {
		needs: goWorks, base: goModule("github.com/gorilla/mux@v1.8.0"), fix: goModule("github.com/gorilla/mux@v1.8.1"),
		fixed: tree{"mux.go": "", "route.go": "", "regexp.go": ""}, tests: tree{"mux_test.go": ""},
		wrong: tree{"more.go": "package mux\n\nconst more = true\n"}, idle: tree{"idle_test.go": goIdle("mux")},
		check: "go test ./...",
		expect: map[string]string{
			"right fix":    "changed/committed green→green; mux_test.go red_for_load_error",
			"tests alone":  "verify_failed/red green→red; fails github.com/gorilla/mux [build failed]",
			"trivial test": "changed/committed green→green; idle_test.go not_red",
			"nothing":      "no_changes/nothing_to_do green→",
			"wrong fix":    "verify_failed/red green→red; fails github.com/gorilla/mux [build failed]",
		},
	},
	"minimist": {
		needs: "npm --version", base: fromNPM("minimist@1.2.5", "tape@4"), fix: fromNPM("minimist@1.2.6"),
		fixed: tree{"index.js": ""}, tests: tree{"test/proto.js": ""},
		wrong: tree{"more.js": "module.exports = true;\n"}, idle: tree{"test/idle.js": tapeIdle},
		check: "node node_modules/tape/bin/tape 'test/*.js'",
		expect: map[string]string{
			"right fix":    "changed/committed green→green; test/proto.js proven by proto pollution (constructor function), proto pollution (constructor function) snyk",
			"tests alone":  "verify_failed/red green→red; fails proto pollution (constructor function); fails proto pollution (constructor function) snyk",
			"trivial test": "changed/committed green→green; test/idle.js not_red",
			"nothing":      "no_changes/nothing_to_do green→",
			"wrong fix":    "verify_failed/red green→red; fails proto pollution (constructor function); fails proto pollution (constructor function) snyk",
		},
	},
	// As gin: a test of the base is red here, for a reason of its own.
	"a red base": {
		needs: goWorks, base: own(tree{
			"go.mod": "module example.com/words\n\ngo 1.21\n", "words.go": "package words\n\nfunc Title(s string) string { return s }\n",
			"words_test.go": goTest("Place", "Place()", "\"elsewhere\""), "place.go": "package words\n\nfunc Place() string { return \"here\" }\n",
		}),
		fixed: tree{"words.go": "package words\n\nimport \"strings\"\n\nfunc Title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }\n"},
		tests: tree{"title_test.go": goTest("Title", "Title(\"a page\")", "\"A page\"")},
		wrong: tree{"words.go": "package words\n\nfunc Title(s string) string { return s + s }\n"},
		idle:  tree{"idle_test.go": goIdle("words")}, check: "go test -v ./...", must: "no_worse",
		expect: map[string]string{
			"right fix":    "changed/committed red→red; fails example.com/words.TestPlace; title_test.go proven by TestTitle",
			"tests alone":  "verify_failed/red red→red; fails example.com/words.TestTitle; fails example.com/words.TestPlace",
			"trivial test": "changed/committed red→red; fails example.com/words.TestPlace; idle_test.go not_red",
			"nothing":      "no_changes/nothing_to_do red→; fails example.com/words.TestPlace",
			"wrong fix":    "verify_failed/red red→red; fails example.com/words.TestTitle; fails example.com/words.TestPlace",
		},
	},
	// As flask and requests, with the runner that Python brings.
	"python": {
		needs: "python3 --version", base: own(tree{
			".gitignore": "__pycache__/\n", "words.py": "def title(s):\n    return s\n", "tests/__init__.py": "",
			"tests/test_words.py": "import unittest\n\nimport words\n\n\nclass Words(unittest.TestCase):\n    def test_empty(self):\n        self.assertEqual(words.title(''), '')\n",
		}),
		fixed: tree{"words.py": "def title(s):\n    return s[:1].upper() + s[1:]\n"},
		tests: tree{"tests/test_words.py": "import unittest\n\nimport words\n\n\nclass Words(unittest.TestCase):\n    def test_empty(self):\n        self.assertEqual(words.title(''), '')\n\n    def test_title(self):\n        self.assertEqual(words.title('a page'), 'A page')\n"},
		wrong: tree{"words.py": "def title(s):\n    return s.upper()\n"},
		idle:  tree{"tests/test_idle.py": "import unittest\n\n\nclass Idle(unittest.TestCase):\n    def test_idle(self):\n        pass\n"},
		check: "python3 -m unittest -v",
		expect: map[string]string{
			"right fix":    "changed/committed green→green; tests/test_words.py proven by tests.test_words.Words.test_title",
			"tests alone":  "verify_failed/red green→red; fails tests.test_words.Words.test_title",
			"trivial test": "changed/committed green→green; tests/test_idle.py not_red",
			"nothing":      "no_changes/nothing_to_do green→",
			"wrong fix":    "verify_failed/red green→red; fails tests.test_words.Words.test_title",
		},
	},
	// As crates, whose target folder git ignores.
	"crate": {
		needs: "cargo --version", base: own(tree{
			".gitignore": "/target\n", "Cargo.toml": "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "Cargo.lock": "version = 3\n\n[[package]]\nname = \"words\"\nversion = \"0.1.0\"\n",
			"src/lib.rs": "pub fn title(s: &str) -> String {\n    s.to_string()\n}\n", "tests/words.rs": "#[test]\nfn empty() {\n    assert_eq!(words::title(\"\"), \"\");\n}\n",
		}),
		fixed: tree{"src/lib.rs": "pub fn title(s: &str) -> String {\n    s[..s.len().min(1)].to_uppercase() + &s[s.len().min(1)..]\n}\n"},
		tests: tree{"tests/words.rs": "#[test]\nfn empty() {\n    assert_eq!(words::title(\"\"), \"\");\n}\n\n#[test]\nfn title() {\n    assert_eq!(words::title(\"a page\"), \"A page\");\n}\n"},
		wrong: tree{"src/lib.rs": "pub fn title(s: &str) -> String {\n    s.to_uppercase()\n}\n"},
		idle:  tree{"tests/idle.rs": "#[test]\nfn idle() {}\n"},
		check: "cargo test --locked",
		expect: map[string]string{
			"right fix":    "changed/committed green→green; tests/words.rs proven by words::title",
			"tests alone":  "verify_failed/red green→red; fails words::title",
			"trivial test": "changed/committed green→green; tests/idle.rs not_red",
			"nothing":      "no_changes/nothing_to_do green→",
			"wrong fix":    "verify_failed/red green→red; fails words::title",
		},
	},
	// As axios: the check runs one of two sets of tests.
	"another runner": {
		needs: "node --test --version", base: own(tree{
			"words.js": "exports.title = (s) => s;\n", "test/unit/words.test.js": nodeTest("empty", "title('')", "''"), "test/module/words.test.js": nodeTest("module", "typeof title", "'function'"),
		}),
		fixed: tree{"words.js": "exports.title = (s) => s.slice(0, 1).toUpperCase() + s.slice(1);\n"},
		tests: tree{"test/module/title.test.js": nodeTest("title", "title('a page')", "'A page'")},
		wrong: tree{"words.js": "exports.title = (s) => s.toUpperCase(;\n"},
		idle:  tree{"test/unit/idle.test.js": nodeTest("idle", "1", "1")},
		check: "node --test --test-reporter tap test/unit/",
		expect: map[string]string{
			"right fix":    "changed/committed green→green; test/module/title.test.js unknown (not run by this check)",
			"tests alone":  "changed/committed green→green; test/module/title.test.js unknown (not run by this check)",
			"trivial test": "changed/committed green→green; test/unit/idle.test.js not_red",
			"nothing":      "no_changes/nothing_to_do green→",
			"wrong fix":    "verify_failed/red green→red; fails test/unit/words.test.js",
		},
	},
}

func goIdle(name string) string {
	return "package " + name + "\n\nimport \"testing\"\n\nfunc TestIdle(t *testing.T) {}\n"
}

func goTest(name, got, want string) string {
	return "package words\n\nimport \"testing\"\n\nfunc Test" + name + "(t *testing.T) {\n\tif got := " + got + "; got != " + want + " {\n\t\tt.Fatal(got)\n\t}\n}\n"
}

func nodeTest(name, got, want string) string {
	return "const { test } = require('node:test');\nconst assert = require('node:assert');\nconst { title } = require('../../words.js');\n\ntest('" + name + "', () => assert.strictEqual(" + got + ", " + want + "));\n"
}

const tapeIdle = "var test = require('tape');\n\ntest('idle', function (t) { t.ok(true); t.end(); });\n"
