//go:build !race

package code_test

import "testing"

// The race detector has these scripts compute so slowly that they are ended for that.
func TestScriptsThatTakeMemoryEndInWords(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"memory in large pieces", `const a = []; for (;;) a.push(new ArrayBuffer(1 << 24))`, "RangeError: out of memory: a script has 256 MiB"},
		{"memory in strings", `const a = []; for (;;) a.push("x".repeat(1 << 20) + a.length)`, "RangeError: out of memory: a script has 256 MiB"},
		{"memory to the last byte", `globalThis.a = []; for (;;) a.push({})`, "RangeError: out of memory: a script has 256 MiB"},
		{"10 GB", `new ArrayBuffer(10 * 2 ** 30)`, "RangeError: "},
		{"a long string", `let s = "x"; for (;;) s += s`, "RangeError: "},
		{"bytes at once", `text("x".repeat(1 << 27))`, "Error: the script showed more than 10000 items or 16 MiB"},
		{"a large error", `throw new Error("x".repeat(1 << 25))`, "Error: xxx"},
	} {
		t.Run(test.name, func(t *testing.T) { wantWords(t, test.script, test.want) })
	}
}
