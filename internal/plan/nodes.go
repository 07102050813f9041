package plan

import (
	"slices"
	"strings"

	"rbt/internal/project"
)

// makeNodes gives a node for every model, seed and source.
func makeNodes(p *project.Project) []*Node {
	nodes := make([]*Node, 0, len(p.Models)+len(p.Seeds)+len(p.Sources))
	for _, m := range p.Models {
		nodes = append(nodes, &Node{
			ID: string(KindModel) + "." + p.Name + "." + m.Name, Name: m.Name, Kind: KindModel, File: m.File,
			Folder: folders(m.Folder), Model: m,
		})
	}
	for _, s := range p.Seeds {
		nodes = append(nodes, &Node{
			ID: string(KindSeed) + "." + p.Name + "." + s.Name, Name: s.Name, Kind: KindSeed, File: s.File,
			Folder: folders(s.Folder), Seed: s,
		})
	}
	for _, s := range p.Sources {
		name := s.Group + "." + s.Name
		nodes = append(nodes, &Node{
			ID: string(KindSource) + "." + p.Name + "." + name, Name: name, Kind: KindSource, File: s.Pos.File, Source: s,
		})
	}
	return nodes
}

// folders cuts the folders of a file apart.
func folders(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// makeTests gives a node for every test, without what it reads.
func makeTests(p *project.Project, byName map[string]*Node) []*TestNode {
	tests := make([]*TestNode, 0, len(p.Tests)+len(p.UnitTests))
	for _, t := range p.Tests {
		n := &TestNode{ID: testID(p.Name, t), Name: t.Name, Kind: KindTest, File: t.Pos.File, Test: t}
		if t.Node == "" {
			n.File, n.Folder = t.File, folders(t.Folder)
		} else if about := byName[strings.ToLower(t.Node)]; about != nil {
			n.About, n.Folder = about, about.Folder
		}
		tests = append(tests, n)
	}
	for _, u := range p.UnitTests {
		n := &TestNode{ID: unitTestID(p.Name, u), Name: u.Name, Kind: KindUnitTest, File: u.Pos.File, Unit: u}
		if about := byName[strings.ToLower(u.Model)]; about != nil {
			n.About = about
			n.Folder = append(slices.Clone(about.Folder), about.Name)
		}
		tests = append(tests, n)
	}
	return tests
}
