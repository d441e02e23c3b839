package testresults

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/joshdk/go-junit"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// MaxJUnit is the maximum size of a JUnit XML file, in bytes.
const MaxJUnit = 8 << 20

// Unread is a comment in joined reports. It says that another report could not be read.
const Unread = " agent-ci: not all reports could be read "

// Bounds on the content of a report: XML elements, and places that are considered.
const (
	deepestXML  = 16      // depth
	deepestTest = 4       // depth within a test; the library keeps an element's text for each element around it
	maxXML      = 200_000 // number of elements
	maxPlaces   = 20      // places in the text of a failure
)

// ReadJUnit reads JUnit XML, as many tools write it. A report longer than MaxJUnit, or with too
// many or too deep elements, is an error.
func ReadJUnit(report io.Reader) (results *Results, err error) {
	defer recoverAsError(&err)
	raw, err := io.ReadAll(io.LimitReader(report, MaxJUnit+1))
	if err != nil {
		return nil, fmt.Errorf("read JUnit report: %w", err)
	}
	if len(raw) > MaxJUnit {
		return nil, fmt.Errorf("read JUnit report: it is longer than %d bytes", MaxJUnit)
	}
	r := junitReader{raw: raw, decoder: xml.NewDecoder(bytes.NewReader(raw))}
	for {
		switch more, err := r.next(); {
		case err != nil:
			return nil, fmt.Errorf("read JUnit report: %w", err)
		case !more:
			return &r.results, nil
		}
	}
}

// junitReader reads a report once, and passes one test at a time to the library.
type junitReader struct {
	raw     []byte
	decoder *xml.Decoder
	count   int
	open    []openElement
	results Results
}

// openElement is an element whose end has not been read.
type openElement struct {
	name  string
	suite string // the name of a test suite
	test  int64  // offset of the beginning of a test; -1 if it is no test
}

// next reads a token. It returns false at the end of the report.
func (r *junitReader) next() (more bool, err error) {
	at := r.decoder.InputOffset()
	token, err := r.decoder.Token()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch e := token.(type) {
	case xml.StartElement:
		return true, r.start(e, at)
	case xml.EndElement:
		return true, r.end()
	case xml.Comment:
		r.results.partial = r.results.partial || string(e) == Unread
	}
	return true, nil
}

// start opens an element. It fails beyond the bounds of a report.
func (r *junitReader) start(e xml.StartElement, at int64) error {
	r.count++
	if r.count > maxXML {
		return fmt.Errorf("it has more than %d elements", maxXML)
	}
	inTest := slices.IndexFunc(r.open, func(o openElement) bool { return o.test >= 0 }) // -1 outside of tests
	tooDeepInTest := inTest >= 0 && len(r.open)-inTest > deepestTest
	if len(r.open) == deepestXML || tooDeepInTest {
		return fmt.Errorf("its elements are nested deeper than %d, or %d in a test", deepestXML, deepestTest)
	}
	element := openElement{name: e.Name.Local, test: -1}
	switch {
	case element.name == "testsuite":
		r.results.seen = true
		for _, a := range e.Attr {
			if a.Name.Local == "name" {
				element.suite = clean(a.Value, maxName)
			}
		}
	case element.name == "testcase" && inTest < 0:
		if n := len(r.open); n > 0 && r.open[n-1].name == "testsuite" {
			element.test = at
		}
	}
	r.open = append(r.open, element)
	return nil
}

// end closes an element. It records a test element.
func (r *junitReader) end() error {
	element := r.open[len(r.open)-1]
	r.open = r.open[:len(r.open)-1]
	if element.test < 0 {
		return nil
	}
	test := r.raw[element.test:r.decoder.InputOffset()]
	suites, err := junit.Ingest(slices.Concat([]byte("<testsuite>"), test, []byte("</testsuite>")))
	if err != nil {
		return err
	}
	for _, suite := range suites {
		for _, test := range suite.Tests {
			r.results.addTestCase(r.open[len(r.open)-1].suite, test)
		}
	}
	return nil
}

// junitPlace matches a file and line in a failure's text.
var junitPlace = lazyregexp.New(`([\w./@+-]+\.\w{1,5}):([0-9]+)`)

// addTestCase records a test of a report under the name of its class, or else of its suite.
func (r *Results) addTestCase(suite string, test junit.Test) {
	group := test.Classname
	if group == "" {
		group = suite
	}
	name := strings.Trim(group+"."+test.Name, ".")
	r.addUnit(Class, group)
	switch test.Status {
	case junit.StatusPassed:
		r.addPassed(name)
		return
	case junit.StatusSkipped:
		r.addSkipped(name)
		return
	}
	message, body := strings.TrimSpace(test.Message), ""
	if reason, ok := test.Error.(junit.Error); ok {
		body = strings.TrimSpace(reason.Body)
	}
	if message == "" {
		message, _, _ = strings.Cut(body, "\n")
	}
	t := Test{Name: name, Message: message, File: test.Properties["file"], Line: parseNumber(test.Properties["line"])}
	for _, m := range junitPlace().FindAllStringSubmatch(body[:min(len(body), maxLine)], maxPlaces) {
		t.considerPlace(m[1], parseNumber(m[2]))
	}
	t.LoadError = test.Message == "collection failure"
	r.addFailure(t)
}
