package audit

import "testing"

// runs are what programs printed in two runs that did the same, and in one that did not.
var runs = map[string]struct{ was, again, other string }{
	"node --test, spec": {
		"✔ adds (0.956415ms)\n▶ subtracts\n  ✖ below zero (4.7ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\nℹ duration_ms 427.607\n\ntest at a.test.js:3:1",
		"✔ adds (1.1ms)\n▶ subtracts\n  ✖ below zero (3.919041ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\nℹ duration_ms 98\n\ntest at a.test.js:3:1",
		"✔ adds (0.956415ms)\n▶ subtracts\n  ✖ below zero (4.7ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\nℹ duration_ms 427.607\n\ntest at a.test.js:4:1",
	},
	"node --test, TAP": {
		"TAP version 13\n# Subtest: adds\nok 1 - adds\n  ---\n  duration_ms: 0.956415\n  ...\n1..1\n# tests 1\n# pass 1\n# fail 0\n# duration_ms 377.12",
		"TAP version 13\n# Subtest: adds\nok 1 - adds\n  ---\n  duration_ms: 39.5\n  ...\n1..1\n# tests 1\n# pass 1\n# fail 0\n# duration_ms 106.269876",
		"TAP version 13\n# Subtest: adds\nok 1 - adds\n  ---\n  duration_ms: 39.5\n  ...\n1..1\n# tests 1\n# pass 2\n# fail 0\n# duration_ms 106.269876",
	},
	"a report in JSON": {
		`{"name":"adds","duration":12.5,"assertions":2}`,
		`{"name":"adds","duration":3,"assertions":2}`,
		`{"name":"adds","duration":12.5,"assertions":3}`,
	},
	"PHPUnit": {
		"PHPUnit 11.5.2 by Sebastian Bergmann and contributors.\n\nRandom Seed:   1795\n\n..   2 / 2 (100%)\n\nTime: 00:00.547, Memory: 24.00 MB\n\nOK (2 tests, 3 assertions)",
		"PHPUnit 11.5.2 by Sebastian Bergmann and contributors.\n\nRandom Seed:   99\n\n..   2 / 2 (100%)\n\nTime: 01:02.004, Memory: 24.00 MB\n\nOK (2 tests, 3 assertions)",
		"PHPUnit 11.5.2 by Sebastian Bergmann and contributors.\n\nRandom Seed:   99\n\n..   2 / 2 (100%)\n\nTime: 01:02.004, Memory: 24.00 MB\n\nOK (2 tests, 4 assertions)",
	},
	"GNU time": {
		"Command exited with non-zero status 1\n0.47user 0.02system 0:00.27elapsed 184%CPU (0avgtext+0avgdata 40220maxresident)k\n0inputs+8outputs (0major+2182minor)pagefaults 0swaps",
		"Command exited with non-zero status 1\n0.03user 0.00system 1:02.07elapsed 84%CPU (0avgtext+0avgdata 39988maxresident)k\n16inputs+0outputs (1major+2190minor)pagefaults 0swaps",
		"Command exited with non-zero status 2\n0.03user 0.00system 1:02.07elapsed 84%CPU (0avgtext+0avgdata 39988maxresident)k\n16inputs+0outputs (1major+2190minor)pagefaults 0swaps",
	},
	"time -p": {"3 rows\nreal 0.07\nuser 0.06\nsys 0.00", "3 rows\nreal 1.20\nuser 0.11\nsys 0.01", "4 rows\nreal 0.07\nuser 0.06\nsys 0.00"},
	"rspec": {
		"Randomized with seed 54046\n..F\nFinished in 0.00213 seconds (files took 0.05 seconds to load)\n3 examples, 1 failure\nrspec ./spec/a_spec.rb:12 # adds",
		"Randomized with seed 3\n..F\nFinished in 1 minute 3.1 seconds (files took 1.2 seconds to load)\n3 examples, 1 failure\nrspec ./spec/a_spec.rb:12 # adds",
		"Randomized with seed 3\n..F\nFinished in 1 minute 3.1 seconds (files took 1.2 seconds to load)\n3 examples, 1 failure\nrspec ./spec/a_spec.rb:13 # adds",
	},
	"go test -bench": {
		"goos: linux\nBenchmarkParse-8   \t 1000000\t      1234 ns/op\t  55.21 MB/s\t      12 B/op\t       1 allocs/op\nPASS\nok  \texample.org/a\t1.204s",
		"goos: linux\nBenchmarkParse-8   \t     812\t   1.53 ns/op\t 101.00 MB/s\t      12 B/op\t       1 allocs/op\nPASS\nok  \texample.org/a\t3.1s",
		"goos: linux\nBenchmarkParse-8   \t     812\t   1.53 ns/op\t 101.00 MB/s\t      12 B/op\t       2 allocs/op\nPASS\nok  \texample.org/a\t3.1s",
	},
	"gunicorn": {
		"[2026-11-22 20:18:14 +0000] [31] [INFO] Listening at: http://127.0.0.1:41390 (31)\n[2026-11-22 20:18:14 +0000] [32] [INFO] Booting worker with pid: 32",
		"[2026-11-23 08:00:01 +0000] [4711] [INFO] Listening at: http://127.0.0.1:33001 (4711)\n[2026-11-23 08:00:01 +0000] [4712] [INFO] Booting worker with pid: 4712",
		"[2026-11-22 20:18:14 +0000] [31] [ERROR] Listening at: http://127.0.0.1:41390 (31)\n[2026-11-22 20:18:14 +0000] [32] [INFO] Booting worker with pid: 32",
	},
	"uvicorn": {
		"INFO:     Started server process [31]\nINFO:     127.0.0.1:54046 - \"GET / HTTP/1.1\" 200 OK",
		"INFO:     Started server process [4711]\nINFO:     127.0.0.1:33001 - \"GET / HTTP/1.1\" 200 OK",
		"INFO:     Started server process [31]\nINFO:     127.0.0.1:54046 - \"GET / HTTP/1.1\" 500 OK",
	},
	"a server in Go": {
		"listening on :41390\naddr=:41390 {\"addr\":\":41390\"}\n3 routes",
		"listening on :54046\naddr=:54046 {\"addr\":\":54046\"}\n3 routes",
		"listening on :41390\naddr=:41390 {\"addr\":\":41390\"}\n4 routes",
	},
}

func TestComparisonIgnoresRunnerNoise(t *testing.T) {
	for name, r := range runs {
		compared := Difference{ignoreVolatile: true}.comparable
		if was, again := compared(r.was), compared(r.again); was != again {
			t.Errorf("%s:\n%s\nis not\n%s", name, was, again)
		}
		if was := compared(r.was); was == compared(r.other) {
			t.Errorf("%s: %s\nis the same as\n%s", name, was, r.other)
		}
	}
}

// These look like what passes, and mean something.
func TestMaskKeepsMeaningfulNumbers(t *testing.T) {
	for _, pair := range [][2]string{
		{"a.go:10:20,30", "a.go:10:21,30"},
		{`{"rows":41390}`, `{"rows":41391}`},
		{`"rows" :41390`, `"rows" :41391`},
		{"a.go:41390: undefined", "a.go:41391: undefined"},
		{"listening on :8080", "listening on :8081"},
		{"items[3]: required", "items[4]: required"},
		{"2 users, 1 system", "3 users, 1 system"},
		{"process 3 files", "process 4 files"},
		{"12 B/op", "13 B/op"},
		{"5 outputs", "6 outputs"},
		{"exit status 1", "exit status 2"},
		{"real 1", "real 2"},
	} {
		if maskVolatile(pair[0]) == maskVolatile(pair[1]) {
			t.Errorf("%q and %q are both %q", pair[0], pair[1], maskVolatile(pair[0]))
		}
	}
}
