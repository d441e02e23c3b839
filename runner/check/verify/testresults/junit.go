package testresults

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// MaxJUnit is the maximum size of a JUnit XML file, in bytes.
const MaxJUnit = 8 << 20

// Unread is a comment in joined reports. It says that another report could not be read.
const Unread = " agent-ci: not all reports could be read "

// Bounds on the content of a report.
const (
	deepestXML = 16      // depth of elements
	maxXML     = 200_000 // number of elements
	maxPlaces  = 20      // places in the text of a failure
)

// ReadJUnit reads JUnit XML, as many tools write it. A report longer than MaxJUnit, or with too
// many or too deep elements, is an error.
func ReadJUnit(report io.Reader) (_ *Results, err error) {
	defer recoverAsError(&err)
	raw, err := io.ReadAll(io.LimitReader(report, MaxJUnit+1))
	if err == nil && len(raw) > MaxJUnit {
		err = fmt.Errorf("it is longer than %d bytes", MaxJUnit)
	}
	results := &Results{}
	if err == nil {
		err = results.addReport(xml.NewTokenDecoder(&boundedXML{Decoder: xml.NewDecoder(bytes.NewReader(raw))}))
	}
	if err != nil {
		return nil, fmt.Errorf("read JUnit report: %w", err)
	}
	return results, nil
}

// boundedXML reads the tokens of a report. It fails beyond the bounds of a report.
type boundedXML struct {
	*xml.Decoder
	count, depth int // of elements
}

// Token returns the next token.
func (b *boundedXML) Token() (xml.Token, error) {
	token, err := b.Decoder.Token()
	switch token.(type) {
	case xml.StartElement:
		b.count++
		b.depth++
	case xml.EndElement:
		b.depth--
	}
	switch {
	case b.count > maxXML:
		return nil, fmt.Errorf("it has more than %d elements", maxXML)
	case b.depth > deepestXML:
		return nil, fmt.Errorf("its elements are nested deeper than %d", deepestXML)
	}
	return token, err
}

// testCase is a test of a report.
type testCase struct {
	Name      string        `xml:"name,attr"`
	Classname string        `xml:"classname,attr"`
	File      string        `xml:"file,attr"`
	Line      string        `xml:"line,attr"`
	Skipped   *struct{}     `xml:"skipped"`
	Failures  []testFailure `xml:"failure"`
	Errors    []testFailure `xml:"error"`
}

// testFailure is the reason of a failing test.
type testFailure struct {
	Message string `xml:"message,attr"`
	Body    string `xml:",chardata"`
}

// addReport records the tests of a report.
func (r *Results) addReport(report *xml.Decoder) error {
	var open []xml.StartElement
	for {
		token, err := report.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.Comment:
			r.partial = r.partial || string(e) == Unread
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.StartElement:
			r.seen = r.seen || e.Name.Local == "testsuite"
			n := len(open)
			isTest := n > 0 && open[n-1].Name.Local == "testsuite" && e.Name.Local == "testcase"
			if !isTest {
				open = append(open, e.Copy())
				continue
			}
			var test testCase
			if err := report.DecodeElement(&test, &e); err != nil {
				return err
			}
			r.addTestCase(open[n-1], test)
		}
	}
}

// junitPlace matches a file and line in a failure's text.
var junitPlace = lazyregexp.New(`([\w./@+-]+\.\w{1,5}):([0-9]+)`)

// addTestCase records a test of a report under the name of its class, or else of its suite.
func (r *Results) addTestCase(suite xml.StartElement, test testCase) {
	group := test.Classname
	for _, a := range suite.Attr {
		if a.Name.Local == "name" {
			group = cmp.Or(group, clean(a.Value))
		}
	}
	name := strings.Trim(group+"."+test.Name, ".")
	r.addUnit(Class, group)
	failures := append(test.Failures, test.Errors...)
	switch {
	case len(failures) == 0 && test.Skipped == nil:
		r.addPassed(name)
		return
	case len(failures) == 0:
		r.addSkipped(name)
		return
	}
	failure := failures[0] // also of a test that is skipped after a failure
	body := strings.TrimSpace(failure.Body)
	firstLine, _, _ := strings.Cut(body, "\n")
	t := Test{
		Name: name, Message: cmp.Or(strings.TrimSpace(failure.Message), firstLine), File: test.File, Line: parseNumber(test.Line),
		LoadError: failure.Message == "collection failure",
	}
	for _, m := range junitPlace().FindAllStringSubmatch(body[:min(len(body), maxLine)], maxPlaces) {
		t.considerPlace(m[1], parseNumber(m[2]))
	}
	r.addFailure(t)
}
