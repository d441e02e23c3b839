//go:build !race

package code_test

import "testing"

// The race detector has these scripts compute so slowly that they are ended for that.
func TestMemoryHungryScriptsGetErrors(t *testing.T) {
	allFail(t, []hostileScript{
		{"memory in large pieces", `const a = []; for (;;) a.push(new ArrayBuffer(1 << 24))`, "RangeError: out of memory: a script has 256 MiB"},
		{"memory in strings", `const a = []; for (;;) a.push("x".repeat(1 << 20) + a.length)`, "RangeError: out of memory: a script has 256 MiB"},
		{"memory to the last byte", `globalThis.a = []; for (;;) a.push({})`, "RangeError: out of memory: a script has 256 MiB"},
		{"10 GB", `new ArrayBuffer(10 * 2 ** 30)`, "RangeError: "},
		{"a long string", `let s = "x"; for (;;) s += s`, "RangeError: "},
		{"bytes at once", `text("x".repeat(1 << 27))`, "Error: the script showed more than 10000 items or 16 MiB"},
		{"numbers without end", `let a = 2n; for (;;) a = a * a`, "RangeError: "},
		{"a number at once", `2n ** 100000000n`, "RangeError: "},
		{"memory in numbers", `const a = []; for (;;) a.push(new Float64Array(1 << 20).fill(1))`, "RangeError: out of memory: a script has 256 MiB"},
		{"a long list", `new Array(4294967295).fill(0)`, "RangeError: out of memory: a script has 256 MiB"},
		{"a buffer that grows", `new ArrayBuffer(8, {maxByteLength: 2 ** 40}).resize(2 ** 36)`, "RangeError: "},
		{"deep JSON", `JSON.parse("[".repeat(3e6))`, "SyntaxError: stack overflow"},
		{"a deep script", `eval("(".repeat(1e6))`, "SyntaxError: stack overflow"},
		{"a large error", `throw new Error("x".repeat(1 << 25))`, "Error: xxx"},
	})
}
