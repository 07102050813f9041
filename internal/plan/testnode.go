package plan

import (
	"crypto/sha256"
	"encoding/hex"

	"rbt/internal/project"
)

// TestNode is a test with the nodes that it reads. Exactly one of Test and Unit
// is set. Tests are leaves: nothing is built from them, so they close no cycle.
type TestNode struct {
	ID     string // "test.shop.not_null_orders_id.1f2e3d4c5b", "unit_test.shop.orders.adds_up"
	Name   string
	Kind   Kind
	File   string
	Folder []string // of the node that it is about; folders under tests/ of a singular test
	Test   *project.Test
	Unit   *project.UnitTest
	About  *Node   // the node of a generic or unit test; nil for a singular one
	Reads  []*Node // About and all others, sorted by ID
	// Compiled is the SQL of a singular test or of a {% test %} block; nil for a
	// built-in assertion and a unit test.
	Compiled *project.Compiled
	// Hash is equal for tests that ask the same.
	Hash string
	// Volatile says why the result can change while the data does not (the test
	// uses the clock); "" if it cannot.
	Volatile string
}

// tags gives the tags that a test was declared with.
func (t *TestNode) tags() []string {
	if t.Unit != nil {
		return t.Unit.Tags
	}
	return t.Test.Tags
}

// singular reports whether a test is a file of its own.
func (t *TestNode) singular() bool { return t.Test != nil && t.About == nil }

// templated reports whether a test is written by the user rather than built in.
func (t *TestNode) templated() bool {
	return t.Test != nil && (t.Test.Template != nil || t.Test.Args.Custom != nil)
}

// testID is the ID of an assertion in dbt's form: the hash keeps apart what two
// names could share after they were cut; singular tests have none.
func testID(projectName string, t *project.Test) string {
	id := string(KindTest) + "." + projectName + "." + t.Name
	if t.Node == "" {
		return id
	}
	sum := sha256.Sum256([]byte(t.Kind + "\x00" + t.Node + "\x00" + t.Output + "\x00" + t.Name))
	return id + "." + hex.EncodeToString(sum[:])[:10]
}

// unitTestID is the ID of a unit test in dbt's form.
func unitTestID(projectName string, u *project.UnitTest) string {
	return string(KindUnitTest) + "." + projectName + "." + u.Model + "." + u.Name
}
