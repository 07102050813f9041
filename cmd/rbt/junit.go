package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rbt/engine"
)

// The elements of JUnit's XML that CI systems read.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Class     string        `xml:"classname,attr"`
	File      string        `xml:"file,attr,omitempty"`
	Time      string        `xml:"time,attr"`
	Failure   *junitProblem `xml:"failure"`
	Error     *junitProblem `xml:"error"`
	Skipped   *junitSkip    `xml:"skipped"`
	SystemOut string        `xml:"system-out,omitempty"`
}

type junitSkip struct {
	Message string `xml:"message,attr,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes the tests of a result as JUnit XML: a suite for every node,
// in plan order, singular tests in one of their own. A warning is a test that
// passed and says something.
func (s *session) writeJUnit(file string, result *engine.Result) error {
	if file == "" || result == nil {
		return nil
	}
	all := junitSuites{Name: "rbt " + result.Command, Time: xmlSeconds(result.Elapsed)}
	at := map[string]int{}
	r := report{text: s.p.SourceText, target: s.shownTarget()}
	elapsed := map[string]time.Duration{}
	for _, t := range result.Tests {
		name := t.Node
		if name == "" {
			name = "tests"
		}
		i, ok := at[name]
		if !ok {
			i = len(all.Suites)
			at[name] = i
			all.Suites = append(all.Suites, junitSuite{Name: name, Timestamp: result.Started.UTC().Format("2006-01-02T15:04:05")})
		}
		suite := &all.Suites[i]
		suite.add(t, name, r, s.p.Mask)
		elapsed[name] += t.Elapsed
		suite.Time = xmlSeconds(elapsed[name])
	}
	for _, suite := range all.Suites {
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+suite.Tests, all.Failures+suite.Failures, all.Errors+suite.Errors, all.Skipped+suite.Skipped
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.WriteFile(file, []byte(xml.Header+string(text)+"\n"), 0o666); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func (suite *junitSuite) add(t *engine.TestResult, class string, r report, mask func(string) string) {
	c := junitCase{Name: t.Name, Class: class, File: t.File, Time: xmlSeconds(t.Elapsed)}
	var text strings.Builder
	r.test(&text, t, "published before this test could run", palette{})
	said := mask(strings.TrimSpace(text.String()))
	suite.Tests++
	switch t.Status {
	case engine.StatusFail:
		suite.Failures++
		c.Failure = &junitProblem{Message: mask(fmt.Sprintf("expected %s; got%s", t.Expected, strings.TrimSuffix(gotText(t), ":"))), Type: t.Kind, Text: said}
	case engine.StatusError:
		suite.Errors++
		message := "the test could not be run"
		if t.Err != nil {
			message = t.Err.Error()
		}
		c.Error = &junitProblem{Message: mask(message), Type: t.Kind, Text: said}
	case engine.StatusSkipped, engine.StatusCancelled:
		suite.Skipped++
		c.Skipped = &junitSkip{}
		if t.Because != "" {
			c.Skipped.Message = "because of " + t.Because
		}
	default:
		c.SystemOut = said
	}
	suite.Cases = append(suite.Cases, c)
}

func xmlSeconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
