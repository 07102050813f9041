package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"rbt/internal/jinja"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// runResults is a result in the shape of dbt's run_results v6. What rbt knows
// beyond it (reason, bytes, parts) stands in adapter_response, the command and
// its state in args.
func (e *Engine) runResults(r *Result, inv Invocation) (object, error) {
	args := object{}
	maps.Copy(args, inv.Args)
	args["which"], args["state"] = inv.Command, "finished"
	switch {
	case r.Cancelled:
		args["state"] = "cancelled"
	case r.Fatal != nil:
		args["state"] = "fatal"
	}
	results := make(encodedList, len(r.Nodes)+len(r.Tests))
	err := encodeEach(len(results), func(i int) any {
		if i < len(r.Nodes) {
			return nodeDocument(r.Nodes[i])
		}
		return testDocument(r.Tests[i-len(r.Nodes)])
	}, func(i int, text string) { results[i] = text })
	return object{
		"metadata": e.metadata("run-results", 6, inv), "results": results, "elapsed_time": r.Elapsed.Seconds(), "args": args,
	}, err
}

// BeginRun leaves last_run.json as a run leaves it that is killed before it could
// say anything: all that the plan is to build was skipped, so that retry does it.
// Where nothing is to be built nothing is written.
func (e *Engine) BeginRun(ctx context.Context, p *plan.Plan, inv Invocation) error {
	r := &Result{Cancelled: true}
	begun := false
	for _, s := range p.Steps {
		n := newNodeResult(s)
		n.Status = StatusUnchanged
		if s.Action != plan.ActionUnchanged {
			n.Status, begun = StatusCancelled, true
		}
		r.Nodes = append(r.Nodes, n)
	}
	if !begun {
		return nil
	}
	results, err := e.runResults(r, inv)
	if err != nil {
		return fmt.Errorf("encode %s: %w", LastRunFile, err)
	}
	return e.writeDocuments(ctx, map[string]any{LastRunFile: results}, nil)
}

// resultDocument holds the keys that nodes and tests share.
func resultDocument(id string, status Status, started time.Time, elapsed time.Duration, worker int, sql string) object {
	timing := emptyList()
	if !started.IsZero() {
		timing = append(timing, object{"name": "execute", "started_at": stamp(started), "completed_at": stamp(started.Add(elapsed))})
	}
	o := object{
		"unique_id": id, "status": string(status), "timing": timing, "thread_id": "Thread-" + strconv.Itoa(worker), "execution_time": elapsed.Seconds(),
		"adapter_response": emptyObject(), "message": nil, "failures": nil, "compiled": sql != "", "compiled_code": orNull(sql), "relation_name": nil,
		"batch_results": nil,
	}
	if status == StatusCancelled {
		// dbt has no such status; the message tells.
		o["status"] = string(StatusSkipped)
	}
	return o
}

func nodeDocument(n *NodeResult) object {
	o := resultDocument(n.ID, n.Status, n.Started, n.Elapsed, n.Worker, n.SQL)
	if n.Materialization != string(project.Ephemeral) {
		o["relation_name"] = relationText(project.Ref{Node: n.Name})
	}
	o["adapter_response"] = object{
		"rows_affected": n.Rows, "bytes": n.Bytes, "parts": n.Parts, "incremental": n.Incremental, "kept": n.Kept, "materialization": n.Materialization,
		"reason": orNull(n.Reason), "notes": append([]string{}, n.Notes...),
	}
	switch n.Status {
	case StatusSkipped:
		o["message"] = orNull(because(n.Because))
	case StatusCancelled:
		o["message"] = "cancelled before it began"
		if !n.Started.IsZero() {
			o["message"] = "cancelled while it ran"
		}
	case StatusError:
		o["message"] = errorText(n.Err)
	default:
		o["message"] = orNull(n.Reason)
	}
	return o
}

func because(cause string) string {
	if cause == "" {
		return ""
	}
	return "because of " + cause
}

func errorText(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}

func testDocument(t *TestResult) object {
	o := resultDocument(t.ID, t.Status, time.Time{}, t.Elapsed, 0, t.SQL)
	o["adapter_response"] = object{"rows_checked": t.Checked, "after_publish": t.AfterPublish}
	switch t.Status {
	case StatusPass, StatusWarn, StatusFail:
		o["failures"] = t.Failures
	}
	switch {
	case t.Status == StatusFail && t.Found != "":
		o["message"] = fmt.Sprintf("Got %s, expected %s", t.Found, t.Expected)
	case t.Status == StatusWarn, t.Status == StatusFail:
		o["message"] = fmt.Sprintf("Got %d %s, expected %s", t.Failures, plural(t.Failures, "result"), cmp.Or(t.Expected, "none"))
	case t.Status == StatusError:
		o["message"] = errorText(t.Err)
	case t.Status == StatusSkipped:
		o["message"] = orNull(because(t.Because))
	}
	return o
}

func plural(n int64, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// plainValue turns a template value into what JSON can hold. Numbers that have a
// spelling of their own keep it as text.
func plainValue(v any) any {
	switch v := v.(type) {
	case nil, bool, string, int, int64, float64:
		return v
	case []string:
		return v
	case map[string]any:
		o := make(object, len(v))
		for k, item := range v {
			o[k] = plainValue(item)
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = plainValue(item)
		}
		return list
	case jinja.Tuple:
		return plainValue([]any(v))
	case *jinja.List:
		return plainValue(v.Items())
	case *jinja.Dict:
		o := object{}
		for _, k := range v.Keys() {
			item, _ := v.Get(k)
			o[strings.TrimSpace(fmt.Sprint(k))] = plainValue(item)
		}
		return o
	}
	return fmt.Sprint(v)
}
