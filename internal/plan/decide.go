package plan

import (
	"fmt"
	"strings"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// Decision is what is to be done with a step, and what it is made from.
type Decision struct {
	Action      Action
	Reasons     []string // at least one
	Fingerprint string   // "" where Pending
	Inputs      lake.Inputs
	Pending     bool // what Inputs hold of parents is settled when the turn comes
}

// decided notes what is to be done with a step.
func (s *Step) decided(d Decision) {
	s.Action, s.Reasons, s.Fingerprint, s.Inputs, s.Pending = d.Action, d.Reasons, d.Fingerprint, d.Inputs, d.Pending
}

// audited turns a step that need not be built into one to audit where tests of it
// were not audited.
func (s *Step) audited(d Decision) Decision {
	if d.Action != ActionUnchanged {
		return d
	}
	if reason := s.auditReason(); reason != "" {
		d.Action, d.Reasons = ActionAudit, []string{reason}
	}
	return d
}

// compare settles what is to be done with a step, whatever becomes of its tests: it
// compares what the step would be made from with what its receipt says.
func (x *identities) compare(s *Step) Decision {
	m := x.inputs(s.Node.index)
	d := Decision{Action: ActionRun, Inputs: m.in, Pending: len(m.pending) > 0}
	if !d.Pending {
		d.Fingerprint = Fingerprint(m.in)
	}
	if d.Reasons = x.mustRun(s); len(d.Reasons) > 0 {
		return d
	}
	r := s.Receipt
	volatile := m.volatile
	if volatile == "" && r.Volatile != nil && r.Inputs.SQL == m.in.SQL {
		volatile = *r.Volatile
	}
	known := !d.Pending && m.unknown == "" && volatile == ""
	if part := listedPart(s.parts, d.Fingerprint); known && s.Incremental && part != "" {
		d.Action, d.Reasons = ActionUnchanged, []string{"already in " + strings.TrimSuffix(part, ".parquet")}
		return d
	}
	if known && d.Fingerprint == r.Fingerprint {
		d.Action, d.Reasons = ActionUnchanged, []string{"nothing changed"}
		return d
	}
	if len(r.Inputs.Config) == 0 { // a crash came before the receipt; no node is without config
		d.Reasons = []string{unknownInputs}
		return d
	}
	d.Reasons = changes(r.Inputs, m.in)
	if s.Node.Seed != nil && len(d.Reasons) > 0 && d.Reasons[0] == sqlChanged {
		d.Reasons[0] = "seed file changed"
	}
	if m.unknown != "" {
		d.Reasons = append(d.Reasons, m.unknown)
	}
	if volatile != "" {
		d.Reasons = append(d.Reasons, "volatile: "+volatile)
	}
	switch {
	case len(d.Reasons) > 0:
	case d.Pending:
		d.Action, d.Reasons = ActionRunIfChanged, []string{pendingReason(m.pending)}
	default: // equal pieces under another hash: an rbt wrote it that hashed otherwise
		d.Reasons = []string{unknownInputs}
	}
	return d
}

// unknownInputs is the reason where a receipt does not say, or not in the way of
// this rbt, what a node was made from.
const unknownInputs = "what it was made from is not known"

// mustRun gives the reasons for which a step runs whatever it is made from.
func (x *identities) mustRun(s *Step) []string {
	switch r := s.Receipt; {
	case r == nil:
		return []string{"new"}
	case x.o.FullRefresh:
		return []string{"full refresh"}
	case x.o.Force:
		return []string{"forced"}
	case s.damage != nil:
		return []string{fmt.Sprintf("output missing: %v", s.damage)}
	case r.Form != s.Node.form():
		return []string{fmt.Sprintf("published as %s before, %s now", formName(r.Form), formName(s.Node.form()))}
	case r.Fingerprint == "":
		return []string{unknownInputs}
	}
	return nil
}

// pendingReason names the parents that decide.
func pendingReason(parents []string) string {
	switch len(parents) {
	case 1:
		return "if " + parents[0] + " changes"
	case 2:
		return "if " + parents[0] + " or 1 other parent changes"
	default:
		return fmt.Sprintf("if %s or %d other parents change", parents[0], len(parents)-1)
	}
}

// listedPart gives the first part of a manifest with a fingerprint, "" if there
// is none.
func listedPart(m *lake.Manifest, fingerprint string) string {
	if m == nil || fingerprint == "" {
		return ""
	}
	for _, p := range m.Parts {
		if m.PartInfo[p].Fingerprint == fingerprint {
			return p
		}
	}
	return ""
}

// form gives how a node lies in the lake, "" for what never does.
func (n *Node) form() lake.Form {
	switch {
	case n.Seed != nil:
		return lake.FormSeed
	case n.Model == nil:
		return ""
	}
	switch n.Model.Materialization {
	case project.View:
		return lake.FormView
	case project.Incremental:
		return lake.FormIncremental
	case project.Ingest:
		return lake.FormIngest
	case project.Table:
		if n.Model.Layout == "parts" {
			return lake.FormParts
		}
		return lake.FormFile
	default: // ephemeral
		return ""
	}
}

// formName gives a form in the words in which users ask for it.
func formName(f lake.Form) string {
	switch f {
	case lake.FormFile:
		return "table"
	case lake.FormParts:
		return "table in parts"
	default:
		return string(f)
	}
}
