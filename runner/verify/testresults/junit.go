package testresults

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/joshdk/go-junit"
)

// MaxJUnit is how long a file of JUnit's XML may be, in bytes.
const MaxJUnit = 8 << 20

// deepestXML is how many elements may stand within each other: the library keeps the
// text of an element with each that it stands in.
const deepestXML = 16

// ReadJUnit reads JUnit's XML, as many tools write it. What is longer than MaxJUnit, or
// nested deeper than test suites are, is an error.
func ReadJUnit(report io.Reader) (told *Results, err error) {
	defer orError(&err)
	raw, err := io.ReadAll(io.LimitReader(report, MaxJUnit+1))
	if err != nil {
		return nil, fmt.Errorf("read JUnit report: %w", err)
	}
	if len(raw) > MaxJUnit {
		return nil, fmt.Errorf("read JUnit report: it is longer than %d bytes", MaxJUnit)
	}
	if err := flat(raw); err != nil {
		return nil, fmt.Errorf("read JUnit report: %w", err)
	}
	suites, err := junit.Ingest(raw)
	if err != nil {
		return nil, fmt.Errorf("read JUnit report: %w", err)
	}
	told = &Results{}
	for _, suite := range suites {
		told.suite(suite)
	}
	return told, nil
}

// flat makes sure that the library can read it in little memory.
func flat(raw []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(raw))
	for depth := 0; ; {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > deepestXML {
			return fmt.Errorf("its elements are nested deeper than %d", deepestXML)
		}
	}
}

func (r *Results) suite(s junit.Suite) {
	for _, inner := range s.Suites {
		r.suite(inner)
	}
	for _, test := range s.Tests {
		r.testcase(s.Name, test)
	}
}

var junitPlace = lazily(`([\w./@+-]+\.\w{1,5}):([0-9]+)`)

func (r *Results) testcase(suite string, test junit.Test) {
	group := test.Classname
	if group == "" {
		group = suite
	}
	name := strings.Trim(group+"."+test.Name, ".")
	switch test.Status {
	case junit.StatusPassed:
		r.pass(name)
		return
	case junit.StatusSkipped:
		return
	}
	said, body := strings.TrimSpace(test.Message), ""
	if reason, ok := test.Error.(junit.Error); ok {
		body = strings.TrimSpace(reason.Body)
	}
	if said == "" {
		said, _, _ = strings.Cut(body, "\n")
	}
	t := Test{Name: name, Message: said, File: test.Properties["file"], Line: number(test.Properties["line"])}
	if m := junitPlace().FindStringSubmatch(body[:min(len(body), longestLine)]); m != nil && t.Line == 0 && (t.File == "" || strings.HasSuffix(t.File, m[1])) {
		t.File, t.Line = m[1], number(m[2])
	}
	t.Load = test.Message == "collection failure"
	r.fail(t)
}
