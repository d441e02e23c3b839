package silenced

// Patterns of files.
var (
	pytestSettings = []string{"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "setup.cfg", "tox.ini"}
	goTests        = []string{"*_test.go"}
	python         = []string{"*.py"}
	javascript     = []string{"*.{js,jsx,mjs,cjs,ts,tsx,mts,cts,vue,svelte}"}
	jsSettings     = []string{"package.json", "jest.config.*", "vitest.config.*", "vite.config.*", "vitest.workspace.*", "karma.conf.*", ".mocharc*", "playwright.config.*", "cypress.config.*", ".nycrc*", ".c8rc*"}
	jvm            = []string{"*.{java,kt,groovy,scala}"}
	ruby           = []string{"*_spec.rb", "*_test.rb", "test_*.rb", "spec_helper.rb", "test_helper.rb", "rails_helper.rb"}
	makefiles      = []string{"Makefile", "GNUmakefile", "*.mk", "Makefile.*"}
	// starts are files that may start checks.
	starts = append([]string{
		"package.json", "*.{sh,bash,zsh,ps1,bat,cmd}", "tox.ini", "noxfile.py", "setup.cfg", "pyproject.toml", "justfile", ".justfile", "*.just", "Taskfile*", "*.{yml,yaml}", "Dockerfile*",
		"Jenkinsfile*", "Rakefile", "composer.json", "deno.json*", "mise.toml", ".husky/**", "**/.husky/**", "**/hooks/**", "tasks.py", "dodo.py", "BUILD*", "pom.xml", "build.gradle*", "Earthfile", "Procfile*",
	}, makefiles...)
)

// checks matches a command that checks something, at the start of a word.
const checks = `(?:^|[\s"'@;&|(=:/-])(?:pytest|py\.test|tox|nox|unittest|nosetests|go\s+(?:-C\s+\S+\s+)?(?:test|vet)|gotestsum|golangci-lint|staticcheck|` +
	`(?:npm|yarn|pnpm|bun)(?:\s+(?:run|-\S+))*\s+[\w:-]*(?:test|lint|check|verify|typecheck|ci)\b[\w:-]*|jest|vitest|mocha|ava|karma|eslint|biome|prettier|tsc|vue-tsc|playwright|cypress|stylelint|` +
	`cargo\s+(?:\+\S+\s+)?(?:test|clippy|check|nextest|fmt|deny|audit)|mvnw?|gradlew?|dotnet\s+test|rspec|rubocop|minitest|phpunit|pest|phpstan|psalm|ctest|mypy|pyright|ruff|flake8|pylint|black|isort|bandit|` +
	`make\s+(?:-\S+\s+)*[\w./-]*(?:test|check|lint|verify)|bats|shellcheck|swift\s+test|mix\s+(?:test|credo|dialyzer)|bazel\s+test|deno\s+(?:test|lint|check)|r(?:ake|ails)\s+(?:test|spec)|` +
	`\$[({]?(?:PYTEST|GOTEST|GO|PYTHON|NPM|CARGO|MVN)[)}]?\s*(?:test|-m\s+pytest|$)|\./[\w./-]*(?:tests?|check|lint|verify)[\w-]*(?:\.\w+)?)\b`

// swallows matches code that hides the failure of a command, such as || true.
const swallows = `(?:\|\|\s*(?:true\b|:(?:\s|["']|$)|(?:/usr)?/bin/true\b|exit\s+0\b|\(exit\s+0\)|return\s+0\b|echo\b|printf\b|\$\(true\))|;\s*(?:true|:|exit\s+0|return\s+0)\s*(?:[\\"'#]|$)|\|\s*(?:true|cat)\s*(?:["']|$))`

// patternTable lists the signs. testdata/examples.txt has examples and counterexamples of each.
var patternTable = []pattern{
	// Python.
	{
		ID: "pytest-hook", Files: python, Line: `^\s*(?:async\s+)?def\s+pytest_(?:cmdline_main|cmdline_parse|load_initial_conftests|pycollect_makemodule|sessionfinish|collection_modifyitems|collection_finish|ignore_collect|collect_file|runtest_makereport|runtest_protocol|runtest_call|runtestloop|report_teststatus|pyfunc_call|pycollect_makeitem|exception_interact)\b|\bpytest_(?:sessionfinish|collection_modifyitems|runtest_makereport|pyfunc_call)\s*=`,
		Why: "this hook of pytest can skip tests, or change their results or the exit status",
	},
	{
		ID: "exit-status", Files: []string{"conftest.py", "test_*.py", "*_test.py", "sitecustomize.py", "usercustomize.py"}, Line: `\bos\._exit\(|\bexitstatus\s*=(?:[^=]|$)|\b(?:sys\.)?exit\(\s*(?:0|EXIT_OK)?\s*\)|raise\s+SystemExit(?:\(\s*0?\s*\))?\s*$|pytest\.exit\(`,
		Why: "it ends the test run with an exit status of its own",
	},
	{
		ID: "python-skip", Files: python, Line: `@(?:pytest\.)?mark\.skip\b|\bpytest\.skip\(|@(?:unittest\.)?skip\b|\.skipTest\(|raise\s+(?:unittest\.)?SkipTest|\bskipif\(\s*(?:True|1|not\s+False)\b|\bskipIf\(\s*(?:True|1)\b|\bskipUnless\(\s*(?:False|0)\b|^\s*__test__\s*=\s*False|pytestmark\s*=\s*pytest\.mark\.skip\b|@(?:nottest|nose\.tools\.nottest)\b`,
		Why: "a test is skipped",
	},
	{
		ID: "python-xfail", Files: python, Line: `\bmark\.xfail\b|\bpytest\.xfail\(|@(?:unittest\.)?expectedFailure\b`,
		Why: "a test may fail",
	},
	{
		ID: "python-ignored", Files: []string{"conftest.py"}, Line: `^\s*collect_ignore(?:_glob)?\s*(?:\+?=|\.)`,
		Why: "pytest does not collect these files",
	},
	{
		ID: "pytest-narrowed", Files: pytestSettings, Line: `(?:addopts|pytest|PYTEST_ADDOPTS|^\s*["']?\s*-)[^#]*?(?:--collect-only|--co\b|[\s"'=,\[]-k[\s"'=,]|--ignore(?:-glob)?\b|--deselect\b|[\s"'=,\[]-m[\s"'=,]+["']?not\b|-p[\s"',]*no:|--last-failed|[\s"'=,\[]--lf\b|--stepwise|--suppress-no-test-exit-code|--no-cov\b)|^\s*norecursedirs\s*=|^\s*python_(?:files|functions|classes)\s*=`,
		Why: "pytest runs fewer tests, or none",
	},
	{
		ID: "pytest-narrowed", Files: starts, Line: `(?:\bpytest|\bpy\.test|PYTEST_ADDOPTS)\b[^#]*?(?:--collect-only|--co\b|[\s"'=]-k[\s"'=]|--ignore(?:-glob)?\b|--deselect\b|\s-m[\s"'=]+["'\\]*not\b|-p[\s"']*no:|--last-failed|--lf\b|--stepwise|--suppress-no-test-exit-code)`,
		Why: "pytest runs fewer tests, or none",
	},

	// Commands and build files.
	{
		ID: "failure-swallowed", Files: starts, Line: checks + `[^#]*?` + swallows + `|^\s*\|\|\s*(?:true|:|exit\s+0)\s*$`,
		Why: "the check passes also if its command fails",
	},
	{
		ID: "failure-swallowed", Files: makefiles, Line: `^\t\s*[@+]*-[@+]*\s*[\w./$({]*` + checks + `|^\t\s*[@+]*-[@+]*\s*(?:pytest|go test|npm|cargo|make|jest|tox)\b`,
		Why: "make goes on if this command fails",
	},
	{
		ID: "check-emptied", Files: []string{"package.json", "composer.json", "deno.json*"}, Line: `(?i)"(?:pre|post)?(?:test|lint|check|typecheck|type-check|verify|ci|coverage|tsc)(?:[:_-][\w:-]+)?"\s*:\s*\[?\s*"\s*(?:true|:|exit 0|\(exit 0\)|/bin/true|(?:echo|printf)\b[^&|;"\\]*(?:\\"[^&|;"\\]*)*|exit|node -e (?:\\"|')?(?:0|process\.exit\(0\)|;)?(?:\\"|')?|npx --version|cd \.)\s*"\s*(?:[,}\]]|$)`,
		Why: "the script does nothing",
	},
	{
		ID: "make-shell", Files: makefiles, Line: `^\s*(?:export\s+|override\s+)*SHELL\s*[:?+]{0,3}=\s*(?:\S*/)?(?:true|echo|cat|:|false)\b|^\s*(?:export\s+|override\s+)*SHELL\s*[:?+]{0,3}=\s*\.{0,2}[\w./-]*/(?:[\w-]+\.\w+|fake[\w-]*|sh[_-]\w+)\s*$|^\s*\.SHELLFLAGS\s*[:?+]{0,3}=(?:[^#]*\btrue\b|\s*$|[^#c]*-n\b)`,
		Why: "make runs all commands with another program",
	},
	{
		ID: "make-ignores", Files: makefiles, Line: `^\.(?:IGNORE|SILENT_FAIL)\s*:|^\s*(?:export\s+|override\s+)*(?:MAKEFLAGS|GNUMAKEFLAGS|MFLAGS)\s*[:?+]{0,3}=[^#]*(?:(?:^|[\s=])-?[a-z]*[intq]\b|--ignore-errors|--keep-going|--touch|--just-print|--dry-run|--question)`,
		Why: "make goes on after a failure, or runs nothing",
	},
	{
		ID: "cargo-runner", Files: []string{"**/.cargo/config", "**/.cargo/config.toml"}, Line: `^\s*(?:target\.\S+\.)?["']?(?:runner|rustc-wrapper|rustc-workspace-wrapper|rustdoc)["']?\s*=`,
		Why: "cargo starts tests by another program",
	},
	{
		ID: "go-flags", Files: append([]string{"go.env", "*.env", ".env*"}, starts...), Line: `\bGOFLAGS\b[^#]*?-(?:run|skip|exec|toolexec|list|vet=off|test\.)`,
		Why: "go runs fewer tests, or another program in their place",
	},
	{
		ID: "go-narrowed", Files: starts, Line: `\bgo\s+test\b[^#|&;]*?\s-{1,2}(?:run[= ]+["']?(?:\^\$|NONE|none|XXX|NoSuch)|exec[= ]|skip[= ]|vet=off|list[= ]|c(?:\s|$))`,
		Why: "go test runs fewer tests, or none",
	},
	{
		ID: "build-skips-tests", Files: []string{"pom.xml", "build.gradle*", "gradle.properties", "*.gradle", "*.kts", "**/.mvn/**", "*.{sh,yml,yaml}", "Makefile", "*.csproj", "*.props"},
		Line: `<(?:skipTests|maven\.test\.skip|skip|testFailureIgnore|skipITs|maven\.test\.failure\.ignore)>\s*true|-D(?:skipTests|maven\.test\.skip|skipITs|maven\.test\.failure\.ignore)\b(?:=true)?|\bignoreFailures\s*(?:=|\.set\()\s*true|\btest(?:s)?\.enabled\s*=\s*false|\bonlyIf\s*\{\s*false|gradlew?\b[^#]*\s-x\s+(?:test|check)\b|\bfailFast\s*=\s*never|\bexcludeTestsMatching\b|<excludedGroups>|<VSTestFailWhenNoTests`,
		Why:  "the build leaves tests out, or ignores their failures",
	},
	{
		ID: "ci-ignores", Files: []string{"*.{yml,yaml}", "Jenkinsfile*"}, Line: `^\s*-?\s*(?:continue-on-error|allow_failure|ignore_errors|ignoreErrors|continueOnError)\s*:\s*["']?(?:true|\$\{\{\s*true\s*\}\})|^\s*-?\s*if\s*:\s*["']?(?:false\b|\$\{\{\s*false\s*\}\})|\bcatchError\s*\(|^\s*-?\s*(?:soft_fail|optional)\s*:\s*true`,
		Why: "a failure of this step or job does not count, or it never runs",
	},
	{
		ID: "hidden-command", Files: append([]string{"*.py", "*.{js,mjs,cjs,ts}", "*.rb"}, starts...), Line: `base64\s+(?:-d|-D|--decode)\b[^#]*\|\s*(?:\S*/)?(?:ba|z|da|k)?sh\b|\b(?:eval|bash\s+-c|sh\s+-c)\b[^#]*base64\s+(?:-d|-D|--decode)|\b(?:exec|eval)\s*\(\s*(?:compile\s*\(\s*)?(?:__import__\(\s*["']base64["']\s*\)\.|base64\.)?(?:b64decode|a85decode|b85decode|bytes\.fromhex|atob|codecs\.decode|zlib\.decompress)|\beval\s*\(\s*(?:Buffer\.from|atob)|xxd\s+-r[^#]*\|\s*(?:ba)?sh\b`,
		Why: "an encoded command is decoded and run",
	},
	{
		ID: "snapshots-updated", Files: append([]string{"*.env"}, append(starts, jsSettings...)...), Line: checks + `[^#]*?\s(?:-u\b|--update-?[sS]napshots?\b|--snapshot-update\b|--update-golden\b|-update(?:\s|$))|\b(?:INSTA_UPDATE=(?:always|1)|UPDATE_(?:GOLDEN|SNAPSHOTS?|EXPECT)=(?:1|true)|INSTA_FORCE_PASS=1)|["']?updateSnapshot["']?\s*:\s*["']?all`,
		Why: "the check rewrites the output that it should compare with",
	},

	// JavaScript.
	{
		ID: "only", Files: javascript, Line: `\b(?:describe|context|suite|it|test|specify)(?:\.(?:concurrent|each|sequential|serial|parallel))*\.only\b|(?:^|[\s;{(])(?:fdescribe|fit|ftest|fcontext)\s*\(`,
		Why: "only this test runs",
	},
	{
		ID: "js-skip", Files: javascript, Line: `\b(?:describe|context|suite|it|test|specify|bench)(?:\.(?:concurrent|each|sequential|serial|parallel))*\.(?:skip|todo|fixme|fails|failing|fail)\b|(?:^|[\s;{(])(?:xdescribe|xit|xtest|xcontext|xspecify)\s*\(|\bthis\.skip\(\)|\b(?:pending|t\.skip)\(`,
		Why: "a test is skipped, or may fail",
	},
	{
		ID: "js-no-tests", Files: append(append([]string{}, jsSettings...), starts...), Line: `["']?passWithNoTests["']?\s*:\s*true|--passWithNoTests\b|["']?(?:testPathIgnorePatterns|modulePathIgnorePatterns)["']?\s*:|["']?testMatch["']?\s*:\s*\[\s*\]|["']?forbidOnly["']?\s*:\s*false|--(?:testPathIgnorePatterns|listTests|pass-with-no-tests)\b|["']?allowOnly["']?\s*:\s*true|["']?dangerouslyIgnoreUnhandledErrors["']?\s*:\s*true|\b(?:jest|vitest|mocha)\b[^#]*\s(?:-t|--testNamePattern|--grep|-g|--fgrep)[\s=]`,
		Why: "the test tool runs fewer tests, or passes without any",
	},
	{
		ID: "js-exit", Files: []string{"*.{test,spec}.{js,jsx,mjs,cjs,ts,tsx,mts,cts}", "jest.setup*", "jest.config*", "vitest.setup*", "setupTests*", "**/__tests__/**", "globalTeardown*", "global-teardown*", "*reporter*.{js,ts,mjs,cjs}"}, Line: `\bprocess\.exit\(\s*0?\s*\)|\bprocess\.exitCode\s*=\s*0\b|\bprocess\.(?:reallyExit)\b`,
		Why: "it ends the test run with an exit status of its own",
	},

	// Go, Java, Rust and others.
	{
		ID: "go-skip", Files: goTests, Line: `\b[a-z]\w{0,3}\.Skip(?:Now|f)?\(`,
		Why: "a test is skipped",
	},
	{
		ID: "go-not-built", Files: goTests, InComments: true, Line: `^//\s*(?:go:build|\+build)\s+(?:ignore|never|none|skip\w*|disabled?|broken|flaky|off|todo|!\w*(?:ci|test)\w*)\b`,
		Why: "the tests of the file are not built",
	},
	{
		ID: "go-exit", Files: goTests, Line: `\bos\.Exit\(\s*0\s*\)|\bsyscall\.Exit\(\s*0\s*\)|\bflag\.Set\(\s*"test\.(?:run|skip|list)"`,
		Why: "it ends the tests of the package as passed",
	},
	{
		ID: "jvm-skip", Files: jvm, Line: `^\s*(?:\w+\s+)?@(?:org\.\w+\.(?:\w+\.)*)?(?:Ignore|Disabled|DisabledIf|IgnoreIf|Ignored|PendingFeature)\b|@Test\s*\([^)]*enabled\s*=\s*false|\bassume(?:True|That)\s*\(\s*false|\bassumeFalse\s*\(\s*true|\bAssumptions\.abort\(`,
		Why: "a test is skipped",
	},
	{
		ID: "rust-skip", Files: []string{"*.rs"}, Line: `^\s*#\[\s*ignore\b|#\[\s*cfg_attr\([^\]]*\bignore\b|#!?\[\s*cfg\(\s*any\(\s*\)\s*\)\s*\]`,
		Why: "a test is skipped",
	},
	{
		ID: "rust-no-tests", Files: []string{"Cargo.toml"}, Line: `^\s*(?:test|doctest|harness)\s*=\s*false|^\s*autotests\s*=\s*false`,
		Why: "cargo does not run these tests",
	},
	{
		ID: "ruby-skip", Files: ruby, Line: `^\s*(?:skip|pending)(?:\s*$|\s+["'(]|\()|^\s*(?:xit|xdescribe|xcontext|xspecify|xexample|fit|fdescribe|fcontext)\b|,\s*(?:skip|pending|focus|:skip|:focus)(?::|\s*=>|\s+do\b|\s*$)|\bexit!\s*\(?\s*(?:0|true)?|\bat_exit\s*\{\s*exit`,
		Why: "a test is skipped, or others are",
	},
	{
		ID: "php-skip", Files: []string{"*.php"}, Line: `\bmarkTest(?:Skipped|Incomplete)\(|->(?:skip|todo|only)\(\s*\)\s*;|^\s*(?:xit|todo)\(`,
		Why: "a test is skipped",
	},
	{
		ID: "dotnet-skip", Files: []string{"*.{cs,fs,vb}"}, Line: `\[(?:\w+,\s*)*Ignore(?:Attribute)?\s*[\](,]|\[(?:Fact|Theory)\s*\([^)]*\bSkip\s*=|\bAssert\.(?:Ignore|Inconclusive|Skip)\(|\[Explicit\b`,
		Why: "a test is skipped",
	},
	{
		ID: "other-skip", Files: []string{"*.{swift,exs,dart,lua,bats,c,cc,cpp}"}, Line: `\bXCTSkip\b|^\s*@(?:module|describe)?tag\s*:?\s*:?skip\b|\bskip\s*:\s*(?:true|["'])|^\s*pending\(|^\s*skip(?:\s*$|\s+["'])|\bGTEST_SKIP\(|\bTEST(?:_[FP])?\(\s*\w+,\s*DISABLED_`,
		Why: "a test is skipped",
	},
	{
		ID: "nothing-asserted", Files: append(append(append(append([]string{"test_*.py", "*_test.py"}, goTests...), javascript...), jvm...), ruby...),
		Line: `^\s*assert\s+True\s*(?:#.*)?$|^\s*assert\s+1\s*(?:==\s*1)?\s*$|\bexpect\(\s*(true|1|null|undefined)\s*\)\.(?:toBe|toEqual|toBeTruthy|to\.be)\b\.?(?:\(\s*(?:true|1|null|undefined)?\s*\))?|\bassert(?:True|\.True|\.ok)?\(\s*(?:t,\s*)?true\s*[,)]|\bself\.assertTrue\(\s*True\s*[,)]|\bassert\.(?:equal|strictEqual)\(\s*(?:true,\s*true|1,\s*1)\s*\)|\bassertEquals\(\s*(?:1,\s*1|true,\s*true)\s*\)`,
		Why:  "the assertion can't fail",
	},

	// Coverage, rules of linters and types, time limits.
	{
		ID: "coverage-lowered", Files: append(append([]string{".coveragerc", "pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "codecov.y*ml", ".codecov.y*ml", "pom.xml", "build.gradle*", "*.{yml,yaml,sh}", ".simplecov", "*_helper.rb", ".testcoverage*", "tarpaulin.toml"}, jsSettings...), makefiles...), SignIfRemoved: true,
		Number: `(?i)\b(fail[_-]under|cov-fail-under|minimum_coverage(?:_by_file)?|min(?:imum)?[_-]?coverage|(?:check-)?coverage[_-]?threshold|branches|functions|lines|statements|minimum|coveredratio|target|fail-under-lines|threshold(?:-total|-file)?)["']?\s*(?:[:=>(]|\s)\s*["']?([0-9][0-9_]*(?:\.[0-9]+)?)%?`,
		Why:    "less coverage is demanded",
	},
	{
		ID: "coverage-excluded", Files: []string{"**"}, InComments: true, Line: `#\s*pragma:\s*no\s*(?:cover|branch)\b|/[*/]\s*(?:istanbul|c8|v8|node:coverage)\s+(?:ignore|disable)\b|#\s*:nocov:|//\s*(?:codecov:ignore|coverage:ignore)|@codeCoverageIgnore|LCOV_EXCL|\[ExcludeFromCodeCoverage|#\[(?:cfg_attr\([^,]*,\s*)?(?:no_coverage|coverage\(off\))`,
		Why: "coverage does not count this code",
	},
	{
		ID: "lint-disabled", Files: []string{"*.{py,js,jsx,mjs,cjs,ts,tsx,mts,cts,vue,svelte,go,java,kt,rb,rs,php,cs,c,cc,cpp,h,swift,sh,bash,css,scss,scala}"}, InComments: true,
		Line: `(?:/[/*]|<!--)\s*(?:eslint-disable|tslint:disable|biome-ignore|oxlint-disable|deno-lint-ignore|@ts-ignore|@ts-nocheck|@ts-expect-error|prettier-ignore|stylelint-disable|jshint\s+ignore|nosemgrep|NOSONAR|NOLINT|noinspection|phpcs:ignore|swiftlint:disable|ktlint-disable|scalastyle:off)|//\s*nolint\b|//lint:(?:file-)?ignore\b|#\s*(?:noqa\b|type:\s*ignore|mypy:\s*ignore-errors|pylint:\s*disable|pyright:\s*ignore|ruff:\s*noqa|flake8:\s*noqa|nosec\b|rubocop:disable|shellcheck\s+disable|fmt:\s*(?:off|skip)|isort:\s*skip)|@phpstan-ignore|@psalm-suppress|@SuppressWarnings\b|@Suppress\(|@SuppressLint|#pragma\s+warning\s*\(?\s*disable|#!?\[\s*allow\(|\[SuppressMessage`,
		Why:  "a rule of a linter or type checker is switched off here",
	},
	{
		ID: "lint-settings", Files: []string{".eslintrc*", "eslint.config.*", "tslint.json", "biome.json*", ".stylelintrc*", "package.json", ".oxlintrc*"}, Line: `["']?[\w@/-]+["']?\s*:\s*\[?\s*(?:["']off["']|0\s*[,}\]]|["']?off["']?\s*$)|["']?ignorePatterns["']?\s*:|["']recommended["']\s*:\s*false`,
		Why: "a rule of a linter is switched off",
	},
	{
		ID: "lint-settings", Files: []string{"pyproject.toml", "setup.cfg", "tox.ini", ".flake8", "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", ".pylintrc", "pylintrc", ".golangci.*", ".rubocop.yml", "tsconfig*.json", "phpstan.neon*", "Cargo.toml", "clippy.toml", "pyrightconfig.json", ".shellcheckrc", ".yamllint*"},
		Line: `^\s*["']?(?:extend-)?ignore["']?\s*=|^\s*per-file-ignores\b|^\s*ignore_errors\s*=\s*[Tt]rue|^\s*ignore_missing_imports\s*=\s*[Tt]rue|^\s*disable\s*=|^\s*disable-all\s*:\s*true|^\s*disable\s*:|^\s*Enabled\s*:\s*false|["']?(?:strict|noImplicitAny|strictNullChecks|noUnusedLocals|noUnusedParameters|noImplicitReturns)["']?\s*[:=]\s*[Ff]alse|["']?(?:skipLibCheck|typeCheckingMode)["']?\s*:\s*(?:["']off|true)|^\s*follow_imports\s*=\s*["']?skip|^\s*[\w:-]+\s*=\s*(?:["']allow["']|\{\s*level\s*=\s*["']allow["'])|issues-exit-code\s*:\s*0|^\s*exit-zero\s*=\s*true`,
		Why:  "a rule of a linter or type checker is switched off",
	},
	{
		ID: "lint-exit-zero", Files: starts, Line: `\b(?:ruff|flake8|pylint|rubocop|golangci-lint|mypy)\b[^#]*(?:--exit-zero\b|--issues-exit-code[= ]0|--fail-level[= ]F|-n\s+never)|\beslint\b[^#]*--(?:quiet|no-error-on)\b`,
		Why: "the linter passes whatever it finds",
	},
	{
		ID: "timeout-raised", Files: append(append(append(append([]string{"conftest.py", "test_*.py", "*_test.py", "*.{test,spec}.{js,jsx,mjs,cjs,ts,tsx,mts,cts}", "jest.setup*", "setupTests*"}, goTests...), jsSettings...), starts...), pytestSettings...), SignIfRaised: true,
		Number: `(?i)\b(setTimeout|testTimeout|timeout(?:-minutes|_minutes|ms|_ms)?|hookTimeout|slow-?test-?threshold|retries|reruns|flaky_retries|max_runs)["']?\s*(?:[:=(]|\s)\s*["']?([0-9][0-9_]*(?:\.[0-9]+)?)`,
		Why:    "a time limit or the number of retries is raised",
	},
	{
		ID: "tool-shadowed", Files: []string{"/{,src/}{pytest,_pytest,unittest}{,/*}.py", "sitecustomize.py", "usercustomize.py"}, Line: `\S`, OncePerFile: true,
		Why: "Python may run this file in place of the test tool, or before it",
	},
	{
		ID: "tool-shadowed", Files: []string{"*.pth"}, Line: `^import\s|^[./~\w-]+$`, OncePerFile: true,
		Why: "Python may run this file in place of the test tool, or before it",
	},
	{
		ID: "tool-replaced", Files: []string{"go.mod"}, Line: `^\s*(?:replace\s+)?\S*/(?:testify|gomega|ginkgo|go-cmp|quicktest)\b.*=>\s*\.{0,2}/`,
		Why: "another program takes the place of a test library",
	},
	{
		ID: "tool-replaced", Files: jsSettings,
		Line: `"(?:jest|vitest|mocha|ava|karma|jasmine|eslint|typescript|cypress|@playwright/test)"\s*:\s*"(?:file|link|portal):|\b(?:runner|testRunner)["']?\s*:\s*["'](?:<rootDir>|\.{1,2})/`,
		Why:  "another program takes the place of a test tool",
	},
	{
		ID: "tool-replaced", Files: makefiles, Line: `^\s*(?:export\s+|override\s+)*(?:PYTEST|PYTHON3?|GOTEST|GO|NPM|NPX|NODE|JEST|CARGO|MVN|PHPUNIT|RSPEC)\s*[:?]{0,2}=\s*(?:\S*/)?(?:true|echo|:)\s*$`,
		Why: "another program takes the place of a test tool",
	},
	{
		ID: "failure-swallowed", Files: []string{"tox.ini", "setup.cfg", "noxfile.py"}, Line: `^\s*ignore_outcome\s*=\s*[Tt]rue|^\s*(?:commands\s*=\s*)?-\s*(?:pytest|py\.test|python|nosetests)\b|\bsuccess_codes\s*=`,
		Why: "the failure of a check does not count",
	},
	{
		ID: "make-empty", Files: makefiles, Line: `^(?:test|tests|check|lint|verify)\s*:[^=;]*;\s*@?(?:true|:|exit\s+0)\s*$`,
		Why: "the target does nothing",
	},
	{
		ID: "tests-narrowed", Files: []string{".rspec", ".mocharc*"}, Line: `--dry-run\b|--tag\s+~|--exclude-pattern\b|^\s*["']?(?:f?grep|dry-?[rR]un|invert)["']?\s*:`,
		Why: "fewer tests run, or none",
	},
	{
		ID: "tests-narrowed", Files: []string{"pom.xml"}, Line: `<exclude>[^<]*(?:Test|IT)s?(?:\*|\.(?:java|class|kt))[^<]*</exclude>`,
		Why: "fewer tests run, or none",
	},
	{
		ID: "diff-hidden", Files: []string{".gitattributes"}, Weak: true, Line: `\s(?:-diff|binary|linguist-generated(?:=(?:[^f\s]|f[^a\s])\S*)?)(?:\s|$)`,
		Why: "GitHub does not show how these files change: read them on the branch",
	},
}
