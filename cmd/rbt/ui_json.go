package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"rbt/engine"
	"rbt/internal/diag"
)

// jsonPrinter writes one JSON object a line. The names are documented in
// docs/json-log.md and do not change; new ones may be added.
type jsonPrinter struct {
	out   io.Writer
	quiet bool
	debug bool
}

type jsonEvent struct {
	Event     string         `json:"event"`
	Time      string         `json:"time"`
	Level     string         `json:"level"`
	Message   string         `json:"message"`
	Number    int            `json:"number,omitempty"`
	Total     int            `json:"total,omitempty"`
	Node      *jsonNode      `json:"node,omitempty"`
	Test      *jsonTest      `json:"test,omitempty"`
	Progress  *jsonProgress  `json:"progress,omitempty"`
	Statement *jsonStatement `json:"statement,omitempty"`
	Problems  []jsonProblem  `json:"problems,omitempty"`
	Summary   map[string]int `json:"summary,omitempty"`
	Seconds   *float64       `json:"elapsed_seconds,omitempty"`
}

type jsonNode struct {
	ID              string     `json:"unique_id"`
	Name            string     `json:"name"`
	ResourceType    string     `json:"resource_type"`
	Materialization string     `json:"materialized"`
	File            string     `json:"original_file_path"`
	Status          string     `json:"status,omitempty"`
	Reason          string     `json:"reason,omitempty"`
	Because         string     `json:"because_of,omitempty"`
	Rows            int64      `json:"rows"`
	Bytes           int64      `json:"bytes"`
	Parts           int        `json:"parts,omitempty"`
	Seconds         float64    `json:"elapsed_seconds"`
	Tests           []jsonTest `json:"tests,omitempty"`
	Notes           []string   `json:"notes,omitempty"`
}

type jsonTest struct {
	ID       string     `json:"unique_id"`
	Name     string     `json:"name"`
	Node     string     `json:"node,omitempty"`
	Kind     string     `json:"kind"`
	Label    string     `json:"label"`
	Status   string     `json:"status"`
	Severity string     `json:"severity"`
	Failures int64      `json:"failures"`
	Checked  *int64     `json:"checked,omitempty"`
	Expected string     `json:"expected,omitempty"`
	Columns  []string   `json:"columns,omitempty"`
	Sample   [][]string `json:"sample,omitempty"`
	Found    string     `json:"found,omitempty"`
	Compiled string     `json:"compiled_path,omitempty"`
	Stored   string     `json:"failing_rows_path,omitempty"`
	Seconds  float64    `json:"elapsed_seconds"`
	Late     bool       `json:"after_publish,omitempty"`
	Because  string     `json:"because_of,omitempty"`

	Problems []jsonProblem `json:"problems,omitempty"`
}

type jsonProgress struct {
	Rows       int64    `json:"rows"`
	Estimated  bool     `json:"rows_estimated,omitempty"`
	Share      *float64 `json:"share,omitempty"`
	Files      int64    `json:"files,omitempty"`
	FilesTotal int64    `json:"files_total,omitempty"`
	Bytes      int64    `json:"bytes,omitempty"`
	BytesTotal int64    `json:"bytes_total,omitempty"`
	Records    int64    `json:"records,omitempty"`
	Rejects    int64    `json:"rejects,omitempty"`
}

type jsonStatement struct {
	Node       string   `json:"node,omitempty"`
	Connection int      `json:"connection"`
	Number     int      `json:"number"`
	SQL        string   `json:"sql"`
	Status     string   `json:"status"`
	Seconds    *float64 `json:"elapsed_seconds,omitempty"`
}

type jsonProblem struct {
	Code     string `json:"code,omitempty"`
	Severity string `json:"severity"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

func (p *jsonPrinter) Event(e engine.Event) {
	if e.Kind == engine.EventNodeProgress && !p.debug || e.Level == "debug" && !p.debug {
		return
	}
	j := toJSON(e)
	if p.quiet && j.Level != "error" && j.Level != "warn" {
		return
	}
	writeJSONLine(p.out, j)
}

func (p *jsonPrinter) Close() {}

// writeJSONLine writes a value as one line, in one call.
func writeJSONLine(w io.Writer, v any) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err == nil {
		_, _ = w.Write(line.Bytes())
	}
}

func toJSON(e engine.Event) jsonEvent {
	j := jsonEvent{
		Event: string(e.Kind), Time: e.Time.UTC().Format(time.RFC3339Nano), Level: "info",
		Message: e.Message, Number: e.Number, Total: e.Total,
	}
	if e.Level != "" {
		j.Level = e.Level
	}
	if e.Node != nil {
		j.Node = toJSONNode(e.Node)
		j.Problems = problemsOf(e.Node.Err)
		if j.Message == "" {
			j.Message = nodeLine(e, 0, palette{})
		}
		switch {
		case e.Kind == engine.EventNodeStarted, e.Kind == engine.EventNodeProgress:
			j.Node.Status = ""
		case isBad(e.Node.Status):
			j.Level = "error"
		}
	}
	if e.Test != nil {
		t := toJSONTest(e.Test)
		j.Test = &t
		if j.Message == "" {
			j.Message = testLine(e, 0, palette{})
		}
		switch {
		case isBad(e.Test.Status):
			j.Level = "error"
		case e.Test.Status == engine.StatusWarn:
			j.Level = "warn"
		}
	}
	if e.Progress != nil {
		j.Progress = toJSONProgress(e.Progress)
	}
	if e.Statement != nil {
		j.Statement = toJSONStatement(e.Statement)
	}
	if e.Kind == engine.EventRunStarted && e.Result != nil {
		j.Message = fmt.Sprintf("rbt %s, invocation %s", e.Result.Command, e.Result.InvocationID)
	}
	if e.Kind == engine.EventRunFinished && e.Result != nil {
		t := tally(e.Result)
		elapsed := e.Result.Elapsed.Seconds()
		j.Seconds = &elapsed
		j.Summary = map[string]int{"pass": t.pass, "warn": t.warn, "error": t.err, "skip": t.skip, "no-op": t.noop, "total": t.total()}
		j.Problems = append(j.Problems, problemsOf(e.Result.Fatal)...)
		if t.err > 0 || e.Result.Fatal != nil {
			j.Level = "error"
		}
		if j.Message == "" {
			j.Message = trimNewline(report{}.summary(e.Result, palette{}))
		}
	}
	return j
}

func toJSONNode(n *engine.NodeResult) *jsonNode {
	j := &jsonNode{
		ID: n.ID, Name: n.Name, ResourceType: n.ResourceType, Materialization: n.Materialization, File: n.File,
		Status: string(n.Status), Reason: n.Reason, Because: n.Because, Rows: n.Rows, Bytes: n.Bytes, Parts: n.Parts,
		Seconds: n.Elapsed.Seconds(), Notes: n.Notes,
	}
	for _, t := range n.Tests {
		j.Tests = append(j.Tests, toJSONTest(t))
	}
	return j
}

func toJSONTest(t *engine.TestResult) jsonTest {
	j := jsonTest{
		ID: t.ID, Name: t.Name, Node: t.Node, Kind: t.Kind, Label: t.Label, Status: string(t.Status), Severity: "error",
		Failures: t.Failures, Expected: t.Expected, Columns: t.Columns, Sample: t.Sample, Seconds: t.Elapsed.Seconds(), Late: t.AfterPublish,
		Because: t.Because, Found: t.Found, Compiled: t.Compiled, Stored: t.Stored, Problems: problemsOf(t.Err),
	}
	if t.Severity == diag.Warning {
		j.Severity = "warn"
	}
	if t.Checked >= 0 {
		j.Checked = &t.Checked
	}
	return j
}

func toJSONProgress(p *engine.Progress) *jsonProgress {
	j := &jsonProgress{Rows: p.Rows, Estimated: p.Estimated, Files: p.Files, FilesTotal: p.FilesTotal, Bytes: p.Bytes, BytesTotal: p.BytesTotal, Records: p.Records, Rejects: p.Rejects}
	if p.Share >= 0 {
		j.Share = &p.Share
	}
	return j
}

func toJSONStatement(s *engine.Statement) *jsonStatement {
	j := &jsonStatement{Node: s.Node, Connection: s.Connection, Number: s.Number, SQL: s.SQL, Status: "started"}
	if s.Done {
		elapsed := s.Elapsed.Seconds()
		j.Status, j.Seconds = "success", &elapsed
		if s.Err != nil {
			j.Status = "error"
		}
	}
	return j
}

// problemsOf spreads an error into its diagnostics.
func problemsOf(err error) []jsonProblem {
	if err == nil {
		return nil
	}
	list, ok := diagnosticsIn(err)
	if !ok {
		return []jsonProblem{{Severity: "error", Message: hideCredentials(err.Error())}}
	}
	out := make([]jsonProblem, 0, len(list))
	for _, d := range list {
		p := jsonProblem{Code: string(d.Code), Severity: "error", File: d.Pos.File, Line: d.Pos.Line, Column: d.Pos.Col, Message: hideCredentials(d.Msg), Hint: hideCredentials(d.Hint)}
		switch d.Severity {
		case diag.Warning:
			p.Severity = "warning"
		case diag.Remark:
			p.Severity = "info"
		}
		out = append(out, p)
	}
	return out
}
