package verify

import "testing"

func TestFindsOwnTestNames(t *testing.T) {
	for name, want := range map[string]string{
		"example.com/m/p.TestA":             "TestA",
		"example.com/m/p.TestA/x.TestB/c d": "TestA",
		"TestA/two_words":                   "TestA",
		"tests/test_a.py::TestC::test_x[a]": "test_x",
		"a.test.js › greet › says hello":    "says hello",
		"group > inner":                     "inner",
		"src/a.js: strict Missing it":       "src/a.js: strict Missing it",
		"p [build failed]":                  "p",
		"com.example.Calc.adds":             "com.example.Calc.adds",
		"":                                  "",
	} {
		if got := testOwnName(name); got != want {
			t.Errorf("%q has the name %q, want %q", name, got, want)
		}
	}
}
