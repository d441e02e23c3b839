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
	results, bounded := &Results{}, &boundedXML{Decoder: xml.NewDecoder(bytes.NewReader(raw))}
	decoder := xml.NewTokenDecoder(bounded)
	for err == nil { // ends with io.EOF
		var root element
		err = decoder.Decode(&root)
		if err == nil {
			results.addElement(root)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read JUnit report: %w", err)
	}
	results.partial = results.partial || bounded.unread
	return results, nil
}

// boundedXML reads the tokens of a report. It fails beyond the bounds of a report.
type boundedXML struct {
	*xml.Decoder
	count, depth int  // of elements
	unread       bool // a comment Unread is between the reports
}

// Token returns the next token.
func (b *boundedXML) Token() (xml.Token, error) {
	token, err := b.Decoder.Token()
	switch token := token.(type) {
	case xml.Comment:
		b.unread = b.unread || b.depth == 0 && string(token) == Unread
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

// element is an element of a report: a suite, a test, its failure or another one.
type element struct {
	XMLName   xml.Name
	Name      string    `xml:"name,attr"`
	Classname string    `xml:"classname,attr"`
	File      string    `xml:"file,attr"`
	Line      string    `xml:"line,attr"`
	Message   string    `xml:"message,attr"`
	Body      string    `xml:",chardata"`
	Below     []element `xml:",any"`
}

// firstBelow returns the first element called name directly in e, or nil.
func (e element) firstBelow(name string) *element {
	for i, below := range e.Below {
		if below.XMLName.Local == name {
			return &e.Below[i]
		}
	}
	return nil
}

// addElement records the tests of the suites in an element.
func (r *Results) addElement(e element) {
	isSuite := e.XMLName.Local == "testsuite"
	r.seen = r.seen || isSuite
	for _, below := range e.Below {
		if isSuite && below.XMLName.Local == "testcase" {
			r.addTestCase(e.Name, below)
		} else {
			r.addElement(below)
		}
	}
}

// junitPlace matches a file and line in a failure's text.
var junitPlace = lazyregexp.New(`([\w./@+-]+\.\w{1,5}):([0-9]+)`)

// addTestCase records a test of a report under the name of its class, or else of its suite.
func (r *Results) addTestCase(suite string, test element) {
	group := cmp.Or(test.Classname, cleanLine(suite))
	name := strings.Trim(group+"."+test.Name, ".")
	r.addUnit(Class, group)
	failure := cmp.Or(test.firstBelow("failure"), test.firstBelow("error")) // a test may be skipped after its failure
	switch {
	case failure == nil && test.firstBelow("skipped") == nil:
		r.addPassed(name)
		return
	case failure == nil:
		r.addSkipped(name)
		return
	}
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
