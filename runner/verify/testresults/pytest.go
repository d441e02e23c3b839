package testresults

import "strings"

// pytest is what pytest prints (https://docs.pytest.org/en/stable/how-to/output.html):
// its short summary names what fails, and with -v a line each test.
type pytest struct {
	told      Results
	section   string
	block     string               // whose failure is shown
	places    map[string][]pyPlace // by block
	stopped   bool
	summaries []Test
}

type pyPlace struct {
	file string
	line int
}

var (
	pySection = lazily(`^=+ (.+?) =+$`)
	pyBlock   = lazily(`^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(.+?) _{3,}$`)
	pyFound   = lazily(`^(\S+\.py):([0-9]+): `)
	pyShort   = lazily(`^(FAILED|ERROR) (\S.*?)(?: - (.*))?$`)
	pyEach    = lazily(`^(\S+\.py::.+?) (PASSED|FAILED|ERROR)(?: +\[ *[0-9]+%\])?$`)
	pyTotal   = lazily(`^(?:=+ )?(?:[0-9]+ [a-z]+, )*[0-9]+ (?:passed|failed|errors?|skipped|warnings?)(?:, [0-9]+ [a-z]+)* in [0-9.]+s`)
)

// mostPlaces is how many lines of a failure may be the test's own.
const mostPlaces = 20

func (p *pytest) line(text string) {
	if text == "" {
		return
	}
	switch {
	case text[0] == '=' || text[0] >= '0' && text[0] <= '9':
		p.heading(text)
	case text[0] == '!':
		p.stopped = p.stopped || strings.Contains(text, "Interrupted") || strings.Contains(text, "stopping after")
	case text[0] == '_' && (p.section == "FAILURES" || p.section == "ERRORS"):
		if m := pyBlock().FindStringSubmatch(text); m != nil {
			p.block = m[1]
		}
	case p.section == "short test summary info":
		p.summary(text)
	case p.block != "":
		p.found(text)
	case strings.Contains(text, ".py::"):
		if m := pyEach().FindStringSubmatch(text); m != nil && m[2] == "PASSED" {
			p.told.pass(m[1])
		}
	}
}

func (p *pytest) heading(text string) {
	if pyTotal().MatchString(text) {
		p.total()
		return
	}
	if m := pySection().FindStringSubmatch(text); m != nil {
		p.section, p.block = m[1], ""
	}
}

// total takes the last line of a run of pytest. All tests that fail are named before it.
func (p *pytest) total() {
	p.flush()
	if !p.stopped {
		p.told.whole(scope{contains: ".py"})
	}
	*p = pytest{told: p.told}
}

func (p *pytest) summary(text string) {
	m := pyShort().FindStringSubmatch(text)
	if m == nil || !strings.Contains(m[2], ".py") || len(p.summaries) >= maxTests {
		return
	}
	t := Test{Name: m[2], Message: m[3]}
	t.File, _, _ = strings.Cut(t.Name, "::")
	t.Load = m[1] == "ERROR" && t.File == t.Name
	p.summaries = append(p.summaries, t)
}

func (p *pytest) found(text string) {
	m := pyFound().FindStringSubmatch(text + " ")
	if m == nil || len(p.places) >= maxTests || len(p.places[p.block]) >= mostPlaces {
		return
	}
	if p.places == nil {
		p.places = map[string][]pyPlace{}
	}
	p.places[p.block] = append(p.places[p.block], pyPlace{m[1], number(m[2])})
}

// flush gives the tests of the summary, each with the first line of its failure that is
// in the file of the test.
func (p *pytest) flush() {
	for _, t := range p.summaries {
		_, block, _ := strings.Cut(t.Name, "::")
		if block = strings.ReplaceAll(block, "::", "."); t.Load {
			block = t.Name
		}
		for _, place := range p.places[block] {
			if place.file == t.File {
				t.Line = place.line
				break
			}
		}
		p.told.fail(t)
	}
	p.summaries = nil
}

func (p *pytest) end() *Results {
	p.flush()
	return &p.told
}
