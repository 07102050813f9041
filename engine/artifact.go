package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"rbt/internal/plan"
	"rbt/internal/project"
)

// Names of the artifacts under the target folder. LastRunFile holds the results
// of the last run, build or retry, which later commands of other kinds leave
// alone, so that retry finds them.
const (
	ManifestFile   = "manifest.json"
	RunResultsFile = "run_results.json"
	SourcesFile    = "sources.json"
	CatalogFile    = "catalog.json"
	LastRunFile    = "last_run.json"
)

// schemaOf names the schema of an artifact, by which readers of dbt's artifacts
// know what they have before them.
func schemaOf(artifact string, version int) string {
	return fmt.Sprintf("https://schemas.getdbt.com/dbt/%s/v%d.json", artifact, version)
}

// Invocation is what an artifact says of the command that wrote it.
type Invocation struct {
	ID        string
	Command   string // run, test, …
	Started   time.Time
	Generated time.Time
	Args      map[string]any // flags as given, for retry: select, exclude, vars, target, full_refresh, …
}

// artifactMetadata is the head of every artifact. Env is where dbt puts what a
// tool wants to add: strict readers refuse other keys. It holds rbt's version
// and the lake of the target, which a later --state defers to.
type artifactMetadata struct {
	Schema       string            `json:"dbt_schema_version"`
	Version      string            `json:"dbt_version"`
	GeneratedAt  string            `json:"generated_at"`
	InvocationID string            `json:"invocation_id"`
	StartedAt    string            `json:"invocation_started_at"`
	Env          map[string]string `json:"env"`
}

// dbtVersion is the version of dbt whose artifacts these are in shape.
const dbtVersion = "1.10.0"

func (e *Engine) metadata(artifact string, version int, inv Invocation) artifactMetadata {
	return artifactMetadata{
		Schema:       schemaOf(artifact, version),
		Version:      dbtVersion,
		GeneratedAt:  stamp(inv.Generated),
		InvocationID: inv.ID,
		StartedAt:    stamp(inv.Started),
		Env:          map[string]string{"lake": e.o.Project.LakeDir, "target": e.o.Project.Target},
	}
}

// stamp is a time as dbt's artifacts have it; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// WriteArtifacts leaves in the target folder what a command did: the manifest
// of the whole project and, where there is a result, run_results.json; of a run,
// build or retry last_run.json too. Each file is whole or not there, and the set
// is written under the folder's lock, so that of two commands the later one's
// stands. Secrets are masked.
func (e *Engine) WriteArtifacts(ctx context.Context, p *plan.Plan, r *Result, inv Invocation) error {
	manifest, keys, err := e.manifest(ctx, p.Graph, inv)
	if err != nil {
		return fmt.Errorf("encode %s: %w", ManifestFile, err)
	}
	documents := map[string]any{ManifestFile: manifest}
	if r != nil {
		results, err := e.runResults(r, inv)
		if err != nil {
			return fmt.Errorf("encode %s: %w", RunResultsFile, err)
		}
		documents[RunResultsFile] = results
		switch inv.Command {
		case "run", "build", "retry":
			documents[LastRunFile] = results
		}
	}
	return e.writeDocuments(ctx, documents, keys)
}

// writeDocuments writes JSON documents into the target folder under its lock. Of a
// manifest keys says which entries a later one may take over.
func (e *Engine) writeDocuments(ctx context.Context, documents map[string]any, keys partKeys) (err error) {
	dir := e.o.Project.TargetDir
	defer func() { err = TargetProblem(err) }()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make target folder: %w", err)
	}
	lock := flock.New(filepath.Join(dir, ".lock"))
	const retryEvery = 20 * time.Millisecond
	if _, err := lock.TryLockContext(ctx, retryEvery); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	for _, name := range sortedKeys(documents) {
		var place partPlaces
		if name == ManifestFile && len(keys) > 0 {
			place = partPlaces{keys: keys, sum: sha256.New()}
		}
		err := project.ReplaceFileWith(filepath.Join(dir, name), func(w io.Writer) error {
			return e.encodeMasked(w, documents[name], &place)
		})
		if err != nil {
			return err // names the file
		}
		if place.sum != nil {
			place.save(dir)
		}
	}
	return nil
}

// encodeMasked writes a document without secrets. Where there are none it goes
// straight to the file: it can be a good part of all memory.
func (e *Engine) encodeMasked(w io.Writer, document any, place *partPlaces) error {
	if !e.o.Project.HasSecrets() {
		if place.sum != nil {
			w = io.MultiWriter(w, place.sum)
		}
		return encodeDocument(w, document, place)
	}
	var b strings.Builder
	if err := encodeDocument(&b, document, &partPlaces{}); err != nil {
		return err
	}
	_, err := io.WriteString(w, e.o.Project.Mask(b.String()))
	return err
}

// PastResults is what run_results.json says of an earlier command.
type PastResults struct {
	Invocation string
	Command    string
	Lake       string // absolute path of the lake that it worked on
	Args       map[string]any
	Status     map[string]string // unique_id -> status
}

// ReadResults reads run_results.json or last_run.json.
func ReadResults(path string) (*PastResults, error) {
	var doc struct {
		Metadata artifactMetadata `json:"metadata"`
		Results  []struct {
			ID     string `json:"unique_id"`
			Status string `json:"status"`
		} `json:"results"`
		Args map[string]any `json:"args"`
	}
	if err := readDocument(path, &doc); err != nil {
		return nil, err
	}
	past := &PastResults{Invocation: doc.Metadata.InvocationID, Lake: doc.Metadata.Env["lake"], Args: doc.Args, Status: make(map[string]string, len(doc.Results))}
	past.Command, _ = doc.Args["which"].(string)
	for _, r := range doc.Results {
		past.Status[r.ID] = r.Status
	}
	return past, nil
}

// PastManifest is what --state needs of another target's manifest.
type PastManifest struct {
	Lake    string // absolute path of the lake that it describes
	Project string
	Prints  map[string]plan.Print
}

// ReadManifest reads a manifest.json that rbt wrote.
func ReadManifest(path string) (*PastManifest, error) {
	type node struct {
		Config struct {
			Body    string `json:"rbt_body"`
			Configs string `json:"rbt_configs"`
		} `json:"config"`
	}
	var doc struct {
		Metadata struct {
			Schema  string            `json:"dbt_schema_version"`
			Project string            `json:"project_name"`
			Env     map[string]string `json:"env"`
		} `json:"metadata"`
		Nodes     map[string]node `json:"nodes"`
		Sources   map[string]node `json:"sources"`
		UnitTests map[string]node `json:"unit_tests"`
	}
	if err := readDocument(path, &doc); err != nil {
		return nil, err
	}
	if want := schemaOf("manifest", 12); doc.Metadata.Schema != want {
		return nil, fmt.Errorf("read %s: its schema is %q and not %q", path, doc.Metadata.Schema, want)
	}
	past := &PastManifest{Lake: doc.Metadata.Env["lake"], Project: doc.Metadata.Project, Prints: map[string]plan.Print{}}
	for _, part := range []map[string]node{doc.Nodes, doc.Sources, doc.UnitTests} {
		for id, n := range part {
			past.Prints[id] = plan.Print{Body: n.Config.Body, Configs: n.Config.Configs}
		}
	}
	return past, nil
}

func readDocument(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read artifact: %w", err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// relationText is the relation of a node as SQL.
func relationText(r project.Ref) string {
	schema, name := r.Relation()
	return relationName(schema, name)
}
