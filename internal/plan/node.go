package plan

import (
	"strings"

	"rbt/internal/project"
)

// materialization is how a node is published; seeds and sources have none.
func (n *Node) materialization() project.Materialization {
	if n.Model == nil {
		return ""
	}
	return n.Model.Materialization
}

// incremental reports whether a node is published by appending.
func (n *Node) incremental() bool { return n.materialization() == project.Incremental }

// transparent reports whether reading a node means reading its parents: it
// keeps no data of its own.
func (n *Node) transparent() bool {
	return n.materialization() == project.View || n.materialization() == project.Ephemeral
}

// Display gives a node as output lines show it: its folders and its name
// ("staging.stg_orders").
func (n *Node) Display() string {
	if len(n.Folder) == 0 {
		return n.Name
	}
	return strings.Join(n.Folder, ".") + "." + n.Name
}

// Tags gives the tags that a node was declared with.
func (n *Node) Tags() []string {
	switch {
	case n.Model != nil:
		return n.Model.Tags
	case n.Seed != nil:
		return n.Seed.Tags
	case n.Source != nil:
		return n.Source.Tags
	}
	return nil
}

func (n *Node) meta() map[string]any {
	switch {
	case n.Model != nil:
		return n.Model.Meta
	case n.Seed != nil:
		return n.Seed.Meta
	case n.Source != nil:
		return n.Source.Meta
	}
	return nil
}
