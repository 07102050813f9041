package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// dltScript loads the nested records: lines parsed by the fast JSON parser
// that dlt has, handed over in pages, normalised by as many processes as there
// are cores, as dlt's page on performance advises.
const dltScript = `import itertools, sys
import dlt
from dlt.common import json

def pages(path, size=5000):
    with open(path, "rb") as lines:
        while page := list(itertools.islice(lines, size)):
            yield [json.loadb(line) for line in page]

if __name__ == "__main__":
    path, kind, out, home = sys.argv[1:]
    if kind == "duckdb":
        destination = dlt.destinations.duckdb(out)
    else:
        destination = dlt.destinations.filesystem(out)
    pipeline = dlt.pipeline("bench", destination=destination, dataset_name="bench", pipelines_dir=home)
    pipeline.run(dlt.resource(pages(path), name="crystal"), loader_file_format="parquet", write_disposition="replace")
`

// dltPackages are the tool and what its destinations need.
var dltPackages = [...]string{"dlt[duckdb,parquet,filesystem]==1.31.0", duckdbPin}

// ingestPeers are the tools that load nested records. They drop no repeats and
// make no dense keys, so that their tables are not compared.
func (b *bench) ingestPeers(dir, input string) ([]side, []target) {
	if !b.opt.peers || !b.wanted("dlt") {
		return nil, nil
	}
	tool := b.install(peer{name: "dlt", packages: dltPackages[:]})
	if tool.reason != "" {
		return nil, nil
	}
	var sides []side
	var targets []target
	for _, kind := range []string{"duckdb", "filesystem"} {
		name := "dlt " + kind
		home := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		sides = append(sides, side{
			name: name, once: true,
			reset: func() error {
				if err := b.cleared(home)(); err != nil {
					return err
				}
				return writeText(filepath.Join(home, "load.py"), dltScript)
			},
			run: func() (usage, error) {
				out := filepath.Join(home, "out")
				if kind == "duckdb" {
					out += ".duckdb"
				}
				return b.child(b.tool(tool, home, "python3", dltSettings(), "load.py", input, kind, out, filepath.Join(home, "state")))
			},
		})
		targets = append(targets, target{side: "rbt", metric: wall, against: name, max: 1.0 / 20})
	}
	return sides, targets
}

// dltSettings is dlt's configuration, which it takes from the environment.
func dltSettings() []string {
	n := runtime.NumCPU()
	return []string{
		fmt.Sprintf("NORMALIZE__WORKERS=%d", n), fmt.Sprintf("LOAD__WORKERS=%d", 2*n),
		// Files have to be cut, or one worker would get all of them.
		"EXTRACT__DATA_WRITER__FILE_MAX_ITEMS=25000", "EXTRACT__DATA_WRITER__BUFFER_MAX_ITEMS=5000",
		"NORMALIZE__DATA_WRITER__BUFFER_MAX_ITEMS=50000",
		"RUNTIME__DLTHUB_TELEMETRY=false", "RUNTIME__LOG_LEVEL=ERROR",
	}
}
